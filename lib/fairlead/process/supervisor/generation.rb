# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The workers that come from one loading of the application, as the supervisor sees them: their spawner, which forks them.
    #
    #   loading ──ready──▶ ready ──end──▶ ending ──KILL at kill_at──▶ reaped
    #      └──────failed, or the spawner has ended──────▶ failed
    class Generation
      attr_reader :number, :pid, :link, :error, :kill_at

      # +pid+ and +link+: the spawner's, and our end. +warm+: whether the spawner was a worker.
      def initialize(number, pid, link, ready: false, warm: false)
        @number = number
        @pid = pid
        @link = link
        @state = ready ? :ready : :loading
        @booted = false
        @warm = warm
        @kill_at = nil
      end

      # What its spawner offers, as text: see Tls::Offers#description. nil if that is what the supervisor offers, too.
      attr_writer :description

      # The same, once.
      def take_description = @description&.unpack1("m").tap { @description = nil }

      def loading? = @state == :loading
      def ready? = @state == :ready
      def failed? = @state == :failed
      def ending? = @state == :ending
      def warm? = @warm

      # Whether the spawner can fork workers now.
      def alive? = ready? && !@link.closed?

      def ready!
        @state = :ready if loading?
      end

      # +reason+: for people.
      def failed!(reason)
        @error = reason
        @state = :failed unless ending?
      end

      # Has the spawner fork a worker: +link+ is the worker's end, +mailbox+ the descriptors of its mailbox.
      def fork_worker(child, link, mailbox)
        @link.send(:fork, child.index, child.slot, ios: [link, *mailbox])
      end

      # Tells the spawner that all workers are of this generation and serve. Only the first time counts.
      def booted
        @link.send(:booted) unless @booted
        @booted = true
      end

      # Tells the spawner that a worker is lost.
      def worker_lost(index) = @link.send(:worker_lost, index)

      # Tells the spawner that a worker has ended. +status+: a Process::Status, or :unknown.
      def worker_ended(child, status)
        numbers = status == :unknown ? [] : [status.exitstatus, status.termsig]
        @link.send(:worker_ended, child.index, child.pid, *numbers)
      end

      # Tells the spawner that the server is about to start again.
      def restarting = @link.send(:restarting)

      def reopen_logs = @link.send(:reopen_logs)

      # The server ends: the spawner forks no more workers, and must not keep the addresses.
      def close_listeners = @link.send(:close_listeners)

      # Asks the spawner to end. One that is still loading is in the application's hands.
      def end(kill_at)
        signal("TERM") unless @link.send(:end) && ready?
        @state = :ending
        @kill_at = kill_at
      end

      def kill
        @kill_at = nil
        signal("KILL")
      end

      # As Child#signal.
      def signal(name)
        Process.kill(name, pid)
      rescue Errno::ESRCH
        nil
      end
    end
  end
end
