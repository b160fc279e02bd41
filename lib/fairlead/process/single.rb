# frozen_string_literal: true

require "fairlead/process/serving"

module Fairlead
  # A server of an application that is an object of its process, without workers: it serves here, and there is no supervisor.
  #
  # TERM, INT and (unless there is an access log to reopen) HUP drain it. A second one of them (see Insistence), or QUIT, stops it
  # at once. USR2 and USR1 drain it and start it again; its listeners stay open.
  class Single
    include Serving

    # How often it looks after certificates and the keys of session tickets, in seconds.
    TENDING = 5

    def initialize(service)
      @service = service
      @log = service.log
      @signals = Signals.new
      @hot_restart = HotRestart.new(@signals, @log)
      @engine = Engine.new(service)
      @plugins = Plugins.new(self, service)
      @started_at = Time.now
      @insistence = Insistence.new
      @ready = @restarting = false
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      @plugins.start
      @service.app
      Native.open_file_limit!
      @signals.trap_known(*Signals::REQUESTS.keys)
      @service.ticket_keys = Tls::OwnKeys.take if @service.tls.any?
      @service.announce
      @engine.start
      @service.tls.start
      @idleness = Idleness.new(idle_timeout) { [@engine.stats] } if idle_timeout
      announce
      serve(heartbeat: heartbeat) { |event| event.is_a?(Array) ? exec_unless(event.last) : act_on(event) }
      @restarting ? start_again : stopped
    ensure
      @signals.restore
    end

    # Asks for something, from any thread and from a trap; see Spawner#ask. What only workers can do is ignored.
    def ask(request) = @signals.push(request)

    # Asks the server to end, from any thread and from a trap.
    def stop_later = ask(:stop)

    # Calls the block in the main loop, which shows that it turns.
    def ping(&block) = @signals.ping(&block)

    # What all threads do.
    def backtraces = [{ worker: nil, pid: Process.pid, threads: Backtraces.all }]

    # What people are told: see Control::Report.
    def status
      {
        pid: Process.pid, state: state, generation: 1, started_at: @started_at, workers: 0, restart: @last_restart, children: []
      }
    end

    # What it was asked to end for: :TERM and the like; nil while it serves.
    attr_reader :ended_by

    private

    def state
      return @restarting ? :restarting : :draining if draining? || @stopped

      @ready ? :ready : :starting
    end

    def announce
      @ready = true
      @log.ready(@service.configuration)
      run_hooks(:after_booted)
      @plugins.booted
    end

    def stopped
      @plugins.stopped
      0
    end

    def act_on(event)
      case Signals::REQUESTS.fetch(event, event)
      when :HEARTBEAT then look_around
      when :stop then stop_or_hurry(event)
      when :halt then stop_on(event)
      when :hang_up then hang_up
      when :reopen_logs then @service.reopen_logs
      when :reload_certificates then reload_certificates
      when :restart then @hot_restart.check unless draining?
      when :phased_restart then restart_instead
      when :backtraces then Backtraces.print(@log)
      when :refork, :add_worker, :remove_worker then @log.needs_workers(event)
      end
    end

    # How often to look around, in seconds; nil for never.
    def heartbeat = [*@idleness&.pause, *(TENDING if @service.tls.any?)].min

    def look_around
      drain_when_idle if @idleness
      @service.tls.tend
      @service.ticket_keys&.tend
    end

    # Returns false if there are none.
    def reload_certificates
      return false unless @service.tls.any?

      @service.tls.ask
      true
    end

    def idle_timeout = @service.configuration.idle_timeout

    # Nobody waits for a load balancer to notice that.
    def drain_when_idle
      return if draining? || !@idleness.over?

      @log.idle(idle_timeout)
      drain(ending: close_listeners)
    end

    # Leaves them to the engine. Returns those that end with it.
    def close_listeners = @service.listeners.ending.tap { @service.listeners.close }

    # The terminal has been closed, unless HUP means the logs or the certificates, or nohup has taken it away.
    def hang_up
      done = [@service.reopen_logs, reload_certificates].any?
      done || @signals.ignored_before?("HUP") || stop_or_hurry(:HUP)
    end

    def stop_or_hurry(event)
      @ended_by ||= event
      hurries = @insistence.hurries?(event)
      @insistence.begin
      return end_restart if @restarting
      return drain_on(event, delay: @service.configuration.drain_delay, ending: close_listeners) unless draining?

      stop_on(event) if hurries
    end

    # It is draining already, and now it ends.
    def end_restart
      @restarting = false
      @service.listeners.remove
    end

    def drain_on(signal, delay: 0, ending: [])
      @log.draining(signal, @service.configuration.shutdown_timeout, delay: delay)
      drain(delay: delay, ending: ending)
    end

    def stop_on(signal)
      @restarting = false
      @log.stopping_at_once(signal)
      stop
    end

    # --- restarts

    def restart_instead
      @log.phased_restart_needs_workers
      @hot_restart.check unless draining?
    end

    # +problem+: with the configuration of the new code.
    def exec_unless(problem)
      return if draining?

      note_restart(problem)
      return @log.restart_refused(problem) if problem

      @restarting = true
      drain_on("restart")
    end

    # The engine has closed its own descriptors of the listeners.
    def start_again
      run_hooks(:before_restart)
      @plugins.restarting
      problem = @hot_restart.exec(@service.listeners, *Tls::OwnKeys.hand_over(@service.ticket_keys))
      @log.restart_refused(problem)
      1
    end

    def note_restart(problem)
      @last_restart = { kind: :hot, state: problem ? :failed : :running, error: problem, at: Time.now }
    end

    def run_hooks(name) = @service.configuration.hooks.run(name, log: @log)
  end
end
