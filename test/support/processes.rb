# frozen_string_literal: true

module Fairlead
  module Test
    # What the system knows about a process (Linux).
    module Processes
      module_function

      # Open descriptors.
      def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

      # Memory in use, in bytes.
      def memory(pid) = Integer(File.read("/proc/#{pid}/status")[/^VmRSS:\s+(\d+)/, 1], 10) * 1024

      # The most memory it has had in use at any time.
      def peak_memory(pid) = Integer(File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1], 10) * 1024

      # Processor time used so far, in seconds. The fields follow the command name, which may hold anything.
      def processor_time(pid)
        fields = File.read("/proc/#{pid}/stat").rpartition(")").last.split
        fields[11, 2].sum { |ticks| Integer(ticks, 10) } / 100.0
      end

      def title(pid) = File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip

      # "R", "S", "T" (stopped), "Z" …; nil when there is no such process.
      def state(pid)
        File.read("/proc/#{pid}/stat").rpartition(")").last.split.first
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end

      # Whether it runs: neither gone nor a zombie.
      def alive?(pid) = ![nil, "Z", "X"].include?(state(pid))
    end
  end
end
