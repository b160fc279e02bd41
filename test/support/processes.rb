# frozen_string_literal: true

require_relative "waiting"

module Fairlead
  module Test
    # Facts about a process from the system (Linux).
    module Processes
      module_function

      # The thread of the server that sends bodies. It starts, and opens an event, once a client takes less than a body has given, which
      # depends on the load of the machine. Both stay.
      BODY_SENDER = "fairlead bodies"

      # Open descriptors, without the event of that thread.
      def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size - thread_names(pid).count(BODY_SENDER)

      # Waits until a process has no more of them than +before+.
      def wait_for_closed_descriptors(pid, before, seconds: 10)
        what = -> { "at most #{before} descriptors, not #{open_files(pid).sort.join(" ")}" }
        Waiting.wait_until(what, seconds: seconds) { descriptors(pid) <= before }
      end

      # Names of its threads, as the system knows them.
      def thread_names(pid)
        Dir.glob("/proc/#{pid}/task/*/comm").filter_map do |path|
          File.read(path).chomp
        rescue Errno::ENOENT, Errno::ESRCH
          nil # ended in the meantime
        end
      end

      # Memory in use, in bytes.
      def memory(pid) = Integer(File.read("/proc/#{pid}/status")[/^VmRSS:\s+(\d+)/, 1], 10) * 1024

      # Peak of the memory in use.
      def peak_memory(pid) = Integer(File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1], 10) * 1024

      # Proportional share of the memory in use, in bytes: memory of several processes counts in part for each.
      def proportional_memory(pid) = Integer(File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1], 10) * 1024

      # Targets of its descriptors: paths, "socket:[INODE]" and the like.
      def open_files(pid)
        Dir.children("/proc/#{pid}/fd").filter_map do |fd|
          File.readlink("/proc/#{pid}/fd/#{fd}")
        rescue Errno::ENOENT
          nil # closed in the meantime
        end
      end

      # Its open files in a folder that never had a name, or have lost it.
      def unnamed_files(pid, folder) = open_files(pid).grep(/\A#{Regexp.escape(folder)}\/.* \(deleted\)\z/)

      # "ADDRESS:PORT" of the peers of its IPv4 connections to +port+.
      def clients(pid, port)
        sockets = open_files(pid).grep(/\Asocket:/).to_h { |name| [name[/\d+/], true] }
        File.readlines("/proc/net/tcp").drop(1).map(&:split).filter_map do |_, own, peer, *rest|
          text_of(peer) if sockets[rest[6]] && own.end_with?(format(":%04X", port)) && !peer.end_with?(":0000")
        end
      end

      # Running processes of a group.
      def group(id)
        Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select { |pid| group_of(pid) == id && alive?(pid) }
      end

      # Processor time used so far, in seconds. The fields follow the command name, which can contain anything.
      def processor_time(pid)
        fields = File.read("/proc/#{pid}/stat").rpartition(")").last.split
        fields[11, 2].sum { |ticks| Integer(ticks, 10) } / 100.0
      end

      # Waits for a second in which the process uses hardly any processor time.
      def wait_for_idle_second(pid)
        since = Waiting.monotonic
        used = processor_time(pid)
        Waiting.wait_until("a second in which process #{pid} is idle", seconds: 20) do
          if processor_time(pid) - used > 0.03
            since = Waiting.monotonic
            used = processor_time(pid)
          end
          Waiting.monotonic - since >= 1
        end
      end

      def title(pid) = File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip

      # Returns "R", "S", "T" (stopped), "Z" …; nil if there is no such process.
      def state(pid)
        File.read("/proc/#{pid}/stat").rpartition(")").last.split.first
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end

      # Returns true if every thread of the process is stopped or has ended.
      def halted?(pid)
        Dir.glob("/proc/#{pid}/task/*/stat").all? { |path| %w[T Z X].include?(state(path[/task\/(\d+)/, 1])) }
      end

      # Returns true if the process runs: it is neither gone nor a zombie.
      def alive?(pid) = ![nil, "Z", "X"].include?(state(pid))

      def group_of(pid)
        Process.getpgid(pid)
      rescue Errno::ESRCH
        nil
      end

      # Converts an address of /proc: bytes in the order of the machine, then the port.
      def text_of(address)
        host, port = address.split(":")
        "#{[host].pack("H*").unpack("C4").reverse.join(".")}:#{port.hex}"
      end
    end
  end
end
