# frozen_string_literal: true

require_relative "waiting"

module Fairlead
  module Test
    # Stops and continues processes.
    module Pausing
      include Waiting

      # Returns when all threads of them stand still.
      def pause_processes(pids)
        pids.each { |pid| Process.kill(:STOP, pid) }
        wait_until("the processes to stop") { pids.all? { |pid| stopped?(pid) } }
      end

      def resume_processes(pids)
        pids.each do |pid|
          Process.kill(:CONT, pid)
        rescue Errno::ESRCH
          nil # it has ended
        end
      end

      private

      def stopped?(pid)
        Dir.glob("/proc/#{pid}/task/*/stat").all? { |path| File.read(path)[/.*\) (\S)/m, 1] == "T" }
      rescue Errno::ENOENT, Errno::ESRCH
        false # a thread has ended meanwhile
      end
    end
  end
end
