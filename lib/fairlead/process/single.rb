# frozen_string_literal: true

require "fairlead/process/serving"

module Fairlead
  # A server that is one process: no supervisor, no workers.
  #
  # TERM, INT and (unless there is an access log to reopen) HUP drain it. A second one of them, or QUIT, stops it at once.
  class Single
    include Serving

    def initialize(service)
      @service = service
      @signals = Signals.new
      @engine = Engine.new(service)
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      @service.app
      Native.open_file_limit!
      @signals.trap("TERM", "INT", "QUIT", "HUP", "USR1", "USR2")
      @engine.start
      @idleness = Idleness.new(idle_timeout) { [@engine.stats] } if idle_timeout
      announce
      serve(heartbeat: @idleness&.pause) { |event| act_on(event) }
      0
    ensure
      @signals.restore
    end

    # Asks the server to end, from any thread and from a trap.
    def stop_later = @signals.push(:TERM)

    private

    def announce
      @service.log.ready(@service.configuration)
      @service.configuration.hooks.run(:after_booted, log: @service.log)
    end

    def act_on(event)
      case event
      when :HEARTBEAT then drain_when_idle
      when :TERM, :INT then drain_on(event)
      when :QUIT then stop_on(event)
      when :HUP then hang_up
      when :USR1, :USR2 then @service.log.signal_ignored(event)
      end
    end

    def idle_timeout = @service.configuration.idle_timeout

    # Nobody waits for a load balancer to notice that.
    def drain_when_idle
      return if draining? || !@idleness.over?

      @service.log.idle(idle_timeout)
      drain
    end

    # The terminal has been closed, unless HUP means the logs or nohup has taken it away.
    def hang_up
      @service.reopen_logs || @signals.ignored_before?("HUP") || drain_on(:HUP)
    end

    def drain_on(signal)
      return stop_on(signal) if draining?

      delay = @service.configuration.drain_delay
      @service.log.draining(signal, @service.configuration.shutdown_timeout, delay: delay)
      drain(delay: delay)
    end

    def stop_on(signal)
      @service.log.stopping_at_once(signal)
      stop
    end
  end
end
