# frozen_string_literal: true

require "fairlead/serving"

module Fairlead
  # A process that the supervisor has forked to serve. It lives as long as its supervisor: it drains when that asks for
  # it (TERM), and also when that is gone, however that came about.
  class Worker
    include Serving

    # +lifeline+: the Supervisor::Lifeline. +shared+ and +slot+: as for Engine.
    def initialize(service, lifeline, shared, slot)
      @service = service
      @lifeline = lifeline
      @slot = slot
      @signals = Signals.new
      @engine = Engine.new(service, shared: shared, slot: slot)
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      settle
      run_hooks(:before_worker_boot)
      @engine.start
      @lifeline.booted(@slot)
      serve(@lifeline.io) { |event| act_on(event) }
      run_hooks(:before_worker_shutdown)
      0
    rescue Error => e
      @lifeline.failed(@slot, e.message)
      1
    end

    private

    # A Ctrl-C reaches every process of the terminal: what follows from it is for the supervisor to say.
    def settle
      Process.setproctitle("fairlead: worker #{@slot} [#{@service.configuration.tag}]")
      @signals.trap("TERM", "QUIT", "HUP")
      @signals.ignore("INT", "USR1", "USR2", "TTIN", "TTOU")
    end

    def run_hooks(name)
      @service.configuration.hooks.run(name, @slot, log: @service.log)
    end

    def act_on(event)
      case event
      when :TERM then drain
      when :QUIT then stop
      when :HUP then @service.reopen_logs
      when :SILENCE then follow_supervisor
      end
    end

    # The lifeline has ended: the supervisor wants an end, or has met its own.
    def follow_supervisor
      return if draining? || !@lifeline.cut?

      @service.log.supervisor_gone unless @lifeline.supervisor?
      drain
    end
  end
end
