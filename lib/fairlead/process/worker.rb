# frozen_string_literal: true

require "fairlead/process/serving"

module Fairlead
  # A process that the supervisor has forked to serve. It drains when the supervisor asks for it (TERM), and when the
  # supervisor is gone.
  class Worker
    include Serving

    # How often it tells the supervisor that it is alive, in seconds.
    HEARTBEAT = 1.0

    # +pipes+: the Supervisor::Pipes. +shared+ and +slot+: as for Engine.
    def initialize(service, pipes, shared, slot)
      @service = service
      @pipes = pipes
      @shared = shared
      @slot = slot
      @signals = Signals.new
      @engine = Engine.new(service, shared: shared, slot: slot)
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      prepare_process
      boot
      @shared.beat(@slot) # the supervisor counts from the first beat
      @pipes.booted(@slot)
      serve(@pipes.end_io, heartbeat: heartbeat) { |event| act_on(event) }
      run_hooks(:before_worker_shutdown)
      0
    rescue Error, *DescriptorError::SYSTEM_ERRORS => e
      e = DescriptorError.new(e) unless e.is_a?(Error)
      @pipes.failed(@slot, e.message)
      1
    end

    private

    # A Ctrl-C reaches every process of the terminal; the supervisor decides what to do.
    def prepare_process
      Process.setproctitle("fairlead: worker #{@slot} [#{@service.configuration.tag}]")
      @signals.ignore("INT", "HUP", "USR1", "USR2", "TTIN", "TTOU")
      @signals.exit_on("TERM")
    end

    # While the application is being loaded, TERM ends the process at once: there is nothing to finish.
    def boot
      run_hooks(:before_worker_boot)
      @service.app
      @signals.trap("TERM", "QUIT", "HUP")
      @engine.start
    end

    # More often if worker_timeout is short.
    def heartbeat = [HEARTBEAT, @service.configuration.worker_timeout / 4.0].min

    def run_hooks(name)
      @service.configuration.hooks.run(name, @slot, log: @service.log)
    end

    def act_on(event)
      case event
      when :HEARTBEAT then @shared.beat(@slot)
      when :TERM then drain
      when :QUIT then stop
      when :HUP then @service.reopen_logs
      when @pipes.end_io then follow_supervisor
      end
    end

    def follow_supervisor
      state = @pipes.supervisor_state
      supervisor_gone if state == :gone
      drain if state
    end

    def supervisor_gone
      @service.log.supervisor_gone
      run_hooks(:supervisor_lost)
    end
  end
end
