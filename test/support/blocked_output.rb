# frozen_string_literal: true

require "io/wait"
require_relative "server_process"

module Fairlead
  module Test
    # A server that writes its output to pipes which the test reads until it stops. Then the pipes fill up, like the output
    # of a terminal after Ctrl-S or of a log driver that hangs.
    class BlockedOutput < ServerProcess
      # +streams+: :stdout, :stderr or both.
      def block(*streams)
        streams.each do |stream|
          blocked[stream] = true
          wait_until("the reader of #{stream} to pause") { @paused[stream] }
          fill(stream)
        end
      end

      # Reads the waiting output, and continues to read.
      def unblock = blocked.clear

      def launch
        @blocked = {}
        @paused = {}
        %i[stdout stderr].each { |stream| File.mkfifo(pipe_path(stream)) }
        @readers = %i[stdout stderr].to_h { |stream| [stream, File.open(pipe_path(stream), File::RDWR)] }
        streams = { in: File::NULL, out: pipe_path(:stdout), err: pipe_path(:stderr) }
        @pid = Process.spawn(process_environment, *command, chdir: directory, pgroup: true, **streams)
        @threads = @readers.map { |stream, reader| Thread.new { copy(stream, reader) } }
        self
      end

      def destroy
        @threads&.each(&:kill)&.each(&:join)
        @readers&.each_value(&:close)
        super
      end

      private

      attr_reader :blocked

      def pipe_path(stream) = path("#{stream}.pipe")

      def copy(stream, reader)
        File.open(log_path(stream), "ab") do |file|
          file.sync = true
          loop do
            @paused[stream] = blocked[stream]
            next sleep(PAUSE) if blocked[stream]

            file.write(reader.readpartial(65_536)) if reader.wait_readable(PAUSE)
          end
        end
      end

      # Opens the pipe again, so that the server's own descriptors stay blocking.
      def fill(stream)
        File.open(pipe_path(stream), File::WRONLY | File::NONBLOCK) do |pipe|
          [4096, 1].each { |size| nil while pipe.write_nonblock("#{"." * (size - 1)}\n", exception: false) != :wait_writable }
        end
      end
    end
  end
end
