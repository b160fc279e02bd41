# frozen_string_literal: true

module Fairlead
  class Supervisor
    # Takes the exit status of processes. The supervisor is the parent of each worker: a spawner forks a process that forks the
    # worker and ends, and the kernel gives such an orphan to the supervisor (PR_SET_CHILD_SUBREAPER). It also gives it what the
    # application leaves behind; once that has ended, somebody has to take its status, too.
    module Reaper
      # How often it looks for strangers, in seconds.
      INTERVAL = 30

      module_function

      # The Process::Status of a process that has ended; :unknown if its end is known only from its +link+; nil while it runs.
      def status(pid, link)
        return link.closed? ? :unknown : nil unless pid

        Process.wait2(pid, Process::WNOHANG)&.last
      rescue Errno::ECHILD # not ours yet, or other code has reaped it
        :unknown if link.closed?
      end

      # The ids of our children that have ended.
      def ended
        Dir.glob("/proc/self/task/*/children").flat_map { |path| File.read(path).split }.select { |pid| zombie?(pid) }.map(&:to_i)
      rescue SystemCallError
        []
      end

      # Reaps those of +candidates+ that still wait for somebody to do it; returns those that have ended and are left.
      def reap_strangers(candidates, except:)
        ended = self.ended - except
        ended.intersection(candidates).each { |pid| wait_for(pid) }
        ended - candidates
      end

      def zombie?(pid)
        File.read("/proc/#{pid}/stat").match?(/\) Z /)
      rescue SystemCallError
        false
      end

      def wait_for(pid)
        Process.wait(pid, Process::WNOHANG)
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
