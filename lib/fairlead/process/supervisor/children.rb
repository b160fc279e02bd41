# frozen_string_literal: true

module Fairlead
  class Supervisor
    # A worker as its supervisor sees it.
    #
    #   booting ──ready──▶ serving ──terminate──▶ ending ──KILL at kill_at──▶ reaped
    class Child
      attr_reader :pid, :slot, :started_at, :kill_at

      def initialize(pid, slot, now)
        @pid = pid
        @slot = slot
        @started_at = now
        @booted = @ending = false
        @kill_at = nil
      end

      def booted? = @booted
      def ending? = @ending

      def booted!
        @booted = true
      end

      # Asks it to end; the watchdog kills it at +kill_at+.
      def terminate(kill_at, signal: "TERM")
        @ending = true
        @kill_at = kill_at
        self.signal(signal)
      end

      def kill
        @kill_at = nil
        signal("KILL")
      end

      # A process keeps its id until it is reaped, so this never reaches another process.
      def signal(name)
        Process.kill(name, pid)
      rescue Errno::ESRCH
        nil
      end
    end

    # The current workers, by slot.
    class Children
      include Enumerable

      def initialize
        @by_slot = {}
      end

      def each(&block) = @by_slot.values.each(&block)

      def empty? = @by_slot.empty?

      def size = @by_slot.size

      def [](slot) = @by_slot[slot]

      def add(child)
        @by_slot[child.slot] = child
      end

      # Removes the workers that have ended and returns [[child, Process::Status], …]. Waits for each by its id, because the
      # application may have child processes of its own in the supervisor.
      def reap
        filter_map do |child|
          status = wait(child.pid)
          next unless status

          @by_slot.delete(child.slot)
          [child, status]
        end
      end

      private

      # The status; nil while it runs; :unknown if other code in this process has reaped it.
      def wait(pid)
        Process.wait2(pid, Process::WNOHANG)&.last
      rescue Errno::ECHILD
        :unknown
      end
    end
  end
end
