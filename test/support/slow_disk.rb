# frozen_string_literal: true

require "fileutils"
require "open3"
require_relative "waiting"

module Fairlead
  module Test
    # A file system (FUSE) with a few files that responds on command. A thread of the test speaks the kernel's protocol
    # (include/uapi/linux/fuse.h) over /dev/fuse.
    class SlowDisk
      include Waiting

      # FUSE is missing, or this user may not mount.
      class Unavailable < StandardError; end

      OPCODES = { 1 => :look_up, 3 => :attributes, 14 => :open, 15 => :read, 17 => :statistics, 18 => :closed, 25 => :closed,
                  26 => :init, 27 => :open, 29 => :closed }.freeze
      # FORGET, INTERRUPT and BATCH_FORGET have no reply.
      SILENT = [2, 36, 42].freeze
      ROOT = 1
      # Lookups in one folder do not wait for each other.
      PARALLEL_LOOK_UPS = 1 << 18
      # Size of the longest request, a write with its head.
      LONGEST = (1 << 17) + 4096
      LONG_AGO = 1_700_000_000

      # Mounts +files+ (name => content) on +folder+, which must exist. The kernel caches nothing, except names for
      # +keep_names+ seconds.
      def initialize(folder, files, keep_names: 0)
        @folder = folder
        @keep_names = keep_names
        @mounted = [folder]
        @names = files.keys
        @files = files
        @stuck = []
        @held = []
        @lock = Mutex.new
        @device = File.open("/dev/fuse", "r+b")
        mount
        @thread = Thread.new { serve }
      rescue SystemCallError => e
        raise Unavailable, "FUSE is not available: #{e.message}"
      end

      # Mounts an overlayfs on +folder+ with these files in its lowest layer.
      def lay_beneath(folder)
        above = "#{folder}-above"
        [folder, above].each { |path| FileUtils.mkdir_p(path) }
        _, error, status = Open3.capture3("mount", "-i", "-t", "overlay", "-o", "lowerdir=#{above}:#{@folder}", "overlay", folder)
        raise Unavailable, "an overlayfs cannot be mounted here: #{error.strip}" unless status.success?

        @mounted.unshift(folder)
      end

      # From now on, withholds the replies to requests of this kind about that file: +:look_up+, +:attributes+, +:open+,
      # +:read+ or +:statistics+.
      def stick(kind, name) = @lock.synchronize { @stuck << [kind, name] }

      # Number of waiting requests.
      def held = @lock.synchronize { @held.size }

      # Waits until that many requests hang.
      def wait_until_held(count = 1) = wait_until("#{count} requests to hang") { held >= count }

      # Replies to the waiting requests, and to all later ones.
      def release
        @lock.synchronize do
          @stuck.clear
          @held.each(&:call)
          @held.clear
        end
      end

      # Unmounts everything: requests that still wait get an error.
      def stop
        release
        @mounted.each { |folder| system("umount", "-l", folder, err: File::NULL) }
        @thread.kill
        @device.close
      end

      private

      def mount
        how = "fd=#{@device.fileno},rootmode=40755,user_id=#{Process.uid},group_id=#{Process.gid},allow_other"
        _, error, status = Open3.capture3("mount", "-i", "-t", "fuse", "-o", how, "slow", @folder, @device => @device)
        return if status.success?

        @device.close
        raise Unavailable, "a FUSE file system cannot be mounted here: #{error.strip}"
      end

      def serve
        loop do
          request = @device.sysread(LONGEST)
          _, opcode, unique, node = request.unpack("L<L<Q<Q<")
          next if SILENT.include?(opcode)

          answer(OPCODES[opcode], unique, node, request.byteslice(40..))
        end
      rescue SystemCallError, IOError
        nil
      end

      def answer(kind, unique, node, rest)
        name = kind == :look_up ? rest.unpack1("Z*") : @names[node - ROOT - 1]
        reply = -> { send_reply(unique, kind ? send(kind, node, name, rest) : Errno::ENOSYS::Errno) }
        @lock.synchronize { @stuck.include?([kind, name]) ? @held << reply : reply.call }
      end

      # +body+: the bytes behind the head, or an error number.
      def send_reply(unique, body)
        error, body = body.is_a?(Integer) ? [-body, ""] : [0, body]
        @device.syswrite([16 + body.bytesize, error, unique].pack("L<l<Q<") + body)
      rescue Errno::ENOENT, Errno::ENODEV, IOError
        nil # The process that asked has gone.
      end

      def init(_, _, _) = [7, 31, 1 << 17, PARALLEL_LOOK_UPS, 16, 12, 1 << 17, 1, 0, 0, 0].pack("L<4S<2L<2S<2L<x28")

      def look_up(_, name, _)
        index = @names.index(name) or return Errno::ENOENT::Errno

        [index + ROOT + 1, 0, @keep_names, 0, 0, 0].pack("Q<4L<2") + attributes_of(index + ROOT + 1)
      end

      def attributes(node, _, _) = [0, 0, 0].pack("Q<L<2") + attributes_of(node)

      def attributes_of(node)
        size = node == ROOT ? 0 : @files.fetch(@names[node - ROOT - 1]).bytesize
        mode = node == ROOT ? 0o040755 : 0o100644
        [node, size, 1, LONG_AGO, LONG_AGO, LONG_AGO, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].pack("Q<6L<10")
      end

      def open(_, _, _) = [0, 0, 0].pack("Q<L<2")

      def read(_, name, rest)
        _, offset, size = rest.unpack("Q<Q<L<")
        @files.fetch(name).byteslice(offset, size) || ""
      end

      def statistics(_, _, _) = [0, 0, 0, 0, 0, 4096, 255, 4096].pack("Q<5L<3x28")

      def closed(_, _, _) = ""
    end
  end
end
