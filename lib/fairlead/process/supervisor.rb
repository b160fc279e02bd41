# frozen_string_literal: true

require "fairlead/process/link"
%w[back_off certificates children generation generations handover reaper restart restarts spawning status survey watchdog workforce].each do |part|
  require "fairlead/process/supervisor/#{part}"
end

module Fairlead
  # The process that keeps the number of the workers: it replaces those that die or hang, acts on signals, restarts, and ends
  # after the last worker. It opens the listeners, but it serves no requests and never loads the application, so it can stay
  # when that is replaced. A spawner does both for it: see Spawner.
  #
  #   supervisor ──▶ spawner of generation 1 ──▶ workers     each of them has a Link to the supervisor,
  #              └─▶ spawner of generation 2 ──▶ workers     and the supervisor is the parent of all
  class Supervisor
    # The maximum number of workers, however often TTIN is sent.
    SLOTS = Options.fetch(:workers).type.most

    # How long a worker may take to end once its requests have been aborted, in seconds: after shutdown_timeout, or at once.
    EXIT_GRACE = 5

    # A worker that dies within this time after its start counts as one that could not start, in seconds.
    EARLY = 1

    # How often workers may die early until the server ends, if none has ever been ready.
    ATTEMPTS = 4

    # +handover+: what an earlier program of this process has left (Handover), at a hot restart.
    def initialize(service, handover: nil)
      @service = service
      @log = service.log
      @signals = Signals.new
      @hot_restart = HotRestart.new(@signals, @log)
      @handover = handover
      @stopping = @ever_booted = @announced = @exec_later = false
      @status = 0
      @defeat = nil
      @started_at = Time.now
      @clock = RunningTime.new
      @insistence = Insistence.new
    end

    # Serves until it is asked to end; returns the exit status. Raises Error if the application cannot be loaded.
    def run
      prepare
      trap_signals
      begin_first
      supervise
      raise Error, @defeat if @defeat

      @status
    ensure
      @signals.restore
    end

    # Asks for something, from any thread and from a trap: :stop, :halt, :restart, :phased_restart, :refork, :reopen_logs, :reload_certificates,
    # :add_worker, :remove_worker or :backtraces.
    def ask(request) = @signals.push(request)

    # Asks the server to end, from any thread and from a trap.
    def stop_later = ask(:stop)

    # Calls the block in the main loop, which shows that it turns.
    def ping(&block) = @signals.ping(&block)

    # What the threads of all workers do; see Survey. Waits for the answers, so it must not be called in the main loop.
    def backtraces = Survey.new(@workforce.children.to_a).take

    # What people see of it; see Status.
    def status = Status.of(self)

    # --- for Status and Handover

    attr_reader :service, :shared, :workforce, :generations, :restarts, :started_at

    # What it was asked to end for: :TERM and the like; nil while it serves.
    attr_reader :ended_by

    def stopping? = @stopping
    def announced? = @announced

    private

    def prepare
      Native.open_file_limit!
      Native.adopt_orphans!
      @shared = @handover&.shared || Native::Shared.new(SLOTS, @service.configuration.workers)
      Stats.shared = @shared
      @generations = Generations.new(Spawning.new(@service, @shared) { after_fork }) { now }
      @workforce = Workforce.new(@service, @shared, @generations) { now }
      @restarts = Restarts.new(@workforce, @generations, @log)
      @certificates = Certificates.new(@service, @signals, @workforce, @generations)
      @watchdog = Watchdog.new(@service, @shared, @workforce.children, @generations, @clock)
      seconds = @service.configuration.idle_timeout
      @idleness = Idleness.new(seconds) { @shared.stats[:workers] } if seconds
    end

    # In a spawner that was forked.
    def after_fork
      @signals.restore
      Launcher.current&.desk&.forget
      [*@workforce.children, *@generations].each { |process| process.link.close }
    end

    def trap_signals
      @signals.trap_known("CHLD", *Signals::REQUESTS.keys)
    end

    def begin_first
      return @generations.current = @generations.start(fresh: false) unless @handover

      @handover.resume(self)
      @service.announce
      @ever_booted = @announced = true
      @restarts.begin(:hot)
    end

    # What a process has said before it ended is read before its end is acted on.
    def supervise
      @certificates.start
      until @stopping && @workforce.children.empty? && @generations.empty?
        seconds = pause
        events = @signals.wait(seconds, *links)
        @clock.look(seconds)
        read_links
        reap(events)
        act_on_all(events)
        tend
      end
    end

    def act_on_all(events)
      events.grep(Symbol) { |event| act_on(event) }
      events.grep(Array) { |_, problem| exec_unless(problem) unless @stopping }
    end

    def links = [*@workforce.children, *@generations].map(&:link).reject(&:closed?)

    # Seconds until something is due.
    def pause = [*@idleness&.pause, @watchdog.pause(now), *@workforce.back_off, *@generations.back_off].min

    def tend
      @watchdog.check(now)
      return end_spawners if @stopping

      @generations.replace_lost
      @workforce.end_surplus
      @workforce.start_missing(@restarts.source || @generations.current)
      @restarts.refork_when_warm(@service.configuration.refork_after, @service.listeners)
      @restarts.advance
      exec_unless(nil) if @exec_later
      @shared.introduce
      @shared.tend_ticket_keys
      @certificates.adopt(@generations.current) unless @restarts.running?
      @certificates.tend
      announce if !@announced && @workforce.complete?
      stop_when_idle if @idleness
    end

    # Nobody waits for a load balancer to notice that.
    def stop_when_idle
      return unless @idleness.over?

      @log.idle(@service.configuration.idle_timeout)
      stop(:idle, delay: 0)
    end

    # --- what is asked for

    def act_on(event)
      request = Signals::REQUESTS.fetch(event, event)
      case request
      when :stop then stop_or_hurry(event)
      when :halt then stop_at_once(event)
      when :hang_up then hang_up
      when :reopen_logs then reopen_logs
      when :reload_certificates then reload_certificates
      when :backtraces then @workforce.children.each { |child| child.link.send(:backtraces) }
      else change(request) unless @stopping
      end
    end

    # HUP ends a server that has nothing to reopen or to read again.
    def hang_up
      done = [reopen_logs, reload_certificates].any?
      done || @signals.ignored_before?("HUP") || stop_or_hurry(:HUP)
    end

    def stop_or_hurry(event)
      return stop(event) unless @stopping

      stop_at_once(event) if @insistence.hurries?(event)
    end

    def change(request)
      case request
      when :add_worker then @workforce.change_wanted(+1)
      when :remove_worker then @workforce.change_wanted(-1)
      when :phased_restart then @restarts.begin(:phased)
      when :refork then @restarts.refork(@service.listeners)
      when :restart then restart_hot
      end
    end

    # An application that was not loaded from a rackup file is in the supervisor itself, so that this could not outlive a failure
    # to load it again. There, a phased restart does what can be done.
    def restart_hot
      @service.given? ? @restarts.begin(:phased) : @hot_restart.check
    end

    # +problem+: with the configuration of the new code. A restart that replaces workers is finished first, and a spawner that is lost
    # replaced: the new program needs one to go back to. It does not know those that end, and could not kill them.
    def exec_unless(problem)
      return @restarts.refuse(problem) if problem

      @restarts.give_way
      return @exec_later = true if @restarts.running? || !@generations.current.alive? || @generations.any?(&:ending?)

      @exec_later = false
      @generations.current.restarting
      @restarts.refuse(exec)
    end

    # Returns why it failed.
    def exec
      handover = Handover.write(self)
      @hot_restart.exec(@service.listeners, { Handover::VARIABLE => handover.fileno.to_s }, handover.to_io)
    rescue Error => e
      e.message
    ensure
      handover&.close
    end

    def stop(reason, delay: @service.configuration.drain_delay)
      @log.draining(reason, @service.configuration.shutdown_timeout, delay: delay)
      @ended_by = reason
      @insistence.begin unless reason == :idle
      @status = 128 + Signal.list.fetch(reason.to_s, 0) if !@ever_booted && @generations.current.loading?
      start_ending(:end, @workforce.deadline + delay, delay)
    end

    def stop_at_once(reason)
      @log.stopping_at_once(reason)
      start_ending(:stop, now + EXIT_GRACE)
    end

    # The listeners are closed here and in the spawners too, so that the kernel refuses connections as soon as no worker accepts
    # any. A spawner that is loading is not waited for.
    def start_ending(how, kill_at, *details)
      @stopping = true
      @restarts.forget
      @workforce.terminate_all(how, kill_at, *details)
      @generations.each { |generation| generation.loading? ? generation.end(now + EXIT_GRACE) : generation.close_listeners }
      @service.listeners.close
    end

    # The spawners end after the workers, for whatever runs in them may be of use to these.
    def end_spawners
      @generations.end_all(@workforce.deadline) if @workforce.children.empty?
    end

    def reopen_logs
      return false unless @service.reopen_logs

      tell_all(:reopen_logs)
      true
    end

    # Returns false if there are none.
    def reload_certificates
      return false unless @service.tls.any?

      @certificates.ask
      true
    end

    def tell_all(kind) = [*@workforce.children, *@generations].each { |process| process.link.send(kind) }
  end
end

require "fairlead/process/supervisor/messages"
