# frozen_string_literal: true

module Fairlead
  module Test
    # Peak memory of processes.
    module PeakMemory
      # Returns the peak of any child of this process during the block, and the growth of this process, in KB.
      def peak_memory
        File.write("/proc/self/clear_refs", "5")
        before = peak_of("self")
        peak = 0
        watch = Thread.new { loop { (peak = [peak, *children_of_this.map { |pid| peak_of(pid) }].max) && sleep(0.01) } }
        yield
        watch.kill.join
        [peak, peak_of("self") - before]
      end

      private

      def peak_of(pid)
        File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1].to_i
      rescue SystemCallError
        0
      end

      def children_of_this = Dir.glob("/proc/self/task/*/children").flat_map { |path| children(path) }

      # A thread may have ended in the meantime.
      def children(path)
        File.read(path).split
      rescue SystemCallError
        []
      end
    end
  end
end
