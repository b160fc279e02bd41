# frozen_string_literal: true

require "fairlead/process/supervisor/back_off"
require "fairlead/process/supervisor/children"
require "fairlead/process/supervisor/pipes"
require "fairlead/process/supervisor/watchdog"

module Fairlead
  # The process that forks the workers and keeps their number: it replaces workers that die or hang, acts on signals, and
  # ends after the last worker. It serves no requests itself.
  class Supervisor
    # The maximum number of workers, however often TTIN is sent.
    SLOTS = Options.fetch(:workers).type.most

    # How long a worker may take to end once its requests have been aborted, in seconds: after shutdown_timeout, or at once.
    EXIT_GRACE = 5

    # A worker that dies within this time after its start counts as one that could not start, in seconds.
    EARLY = 1

    def initialize(service)
      @service = service
      @log = service.log
      @wanted = service.configuration.workers
      @children = Children.new
      @back_off = BackOff.new { now }
      @stopping = @ever_booted = @announced = false
      @status = 0
    end

    # Serves until it is asked to end; returns the exit status.
    def run
      prepare
      trap_signals
      start_missing_workers
      supervise
      @status
    ensure
      @signals&.restore
    end

    # Asks the server to end, from any thread and from a trap.
    def stop_later = @signals&.push(:TERM)

    private

    def prepare
      Native.open_file_limit!
      preload if @service.preload?
      @shared = Native::Shared.new(SLOTS, @wanted)
      @pipes = Pipes.new
      @watchdog = Watchdog.new(@service, @shared, @children)
      run_hooks(:before_fork)
    end

    # Loads the application and collects garbage, so that workers share memory: pages with old objects are seldom written to.
    def preload
      @service.app
      Process.respond_to?(:warmup) ? Process.warmup : GC.start
    end

    def trap_signals
      @signals = Signals.new
      @signals.trap("CHLD", "TERM", "INT", "QUIT", "HUP", "TTIN", "TTOU", "USR1", "USR2")
    end

    # Workers are reaped before the reports are read, so that the report of a dead worker is not taken for one of its
    # successor.
    def supervise
      until @stopping && @children.empty?
        @signals.wait(pause, @pipes.reports_io).each { |event| act_on(event) if event.is_a?(Symbol) }
        dead = @children.reap
        @pipes.reports.each { |report| act_on_report(report) }
        dead.each { |child, status| worker_ended(child, status) }
        @watchdog.check(now)
        start_missing_workers
        @shared.introduce
      end
    end

    # Seconds until the watchdog or the back-off needs attention.
    def pause
      [@watchdog.pause(now), *@back_off.remaining].min
    end

    # --- signals

    def act_on(event)
      case event
      when :TERM, :INT then @stopping ? stop_at_once(event) : stop(event)
      when :QUIT then stop_at_once(event)
      when :HUP then reopen_logs || @signals.ignored_before?("HUP") || stop(event)
      when :TTIN then change_wanted(+1)
      when :TTOU then change_wanted(-1)
      when :USR1, :USR2 then @log.signal_ignored(event)
      end
    end

    def stop(reason)
      return if @stopping

      @log.draining(reason, shutdown_timeout)
      start_ending
      @children.each { |child| child.terminate(now + shutdown_timeout + EXIT_GRACE) }
    end

    def stop_at_once(signal)
      @log.stopping_at_once(signal)
      start_ending
      @children.each { |child| child.terminate(now + EXIT_GRACE, signal: "QUIT") }
    end

    # The listeners are closed here too, so that the kernel refuses connections as soon as no worker accepts any.
    def start_ending
      @stopping = true
      @pipes.ask_workers_to_end
      @service.listeners.close
    end

    def reopen_logs
      return false unless @service.reopen_logs

      @children.each { |child| child.signal("HUP") }
      true
    end

    def change_wanted(by)
      return if @stopping
      return @log.last_worker_kept if (@wanted + by).zero?
      return @log.workers_at_limit(SLOTS) if @wanted + by > SLOTS

      @shared.add(@wanted) if by.positive?
      @wanted += by
      @log.workers_wanted(@wanted)
      surplus = @children[@wanted] if by.negative?
      surplus&.terminate(now + shutdown_timeout + EXIT_GRACE)
    rescue *DescriptorError::SYSTEM_ERRORS => e
      @log.worker_not_added(DescriptorError.new(e))
    end

    # --- workers

    def start_missing_workers
      return if @stopping

      (0...@wanted).each { |slot| start_worker(slot) unless @children[slot] || @back_off.remaining }
    end

    def start_worker(slot)
      @shared.reset(slot)
      run_hooks(:before_worker_fork, slot)
      pid = fork { exit(work(slot)) }
      @children.add(Child.new(pid, slot, now))
      run_hooks(:after_worker_fork, slot)
    end

    # In the new process.
    def work(slot)
      @signals.restore
      @pipes.close_supervisor_ends
      Worker.new(@service, @pipes, @shared, slot).run
    end

    def act_on_report(report)
      child = @children[report.slot]
      case report.kind
      when :booted then worker_booted(child) if child
      when :failed then start_failed(report)
      end
    end

    def worker_booted(child)
      child.booted!
      @ever_booted = true
      @log.worker_booted(child, now - child.started_at)
      announce if !@announced && @children.size >= @wanted && @children.all?(&:booted?)
    end

    def announce
      @announced = true
      @log.ready(@service.configuration)
      run_hooks(:after_booted)
    end

    # If no worker has ever been ready, the server ends: the application cannot be loaded.
    def start_failed(report)
      return if @stopping

      @log.worker_failed_to_boot(report.slot, report.text)
      return if @ever_booted

      @status = 1
      start_ending
      @children.each { |child| child.terminate(now + EXIT_GRACE) }
    end

    def worker_ended(child, status)
      @shared.reset(child.slot) # workers that drain must not leave transfers to it
      return if @stopping || (child.ending? && child.slot >= @wanted)

      unless child.ending?
        @log.worker_ended(child, status)
        run_hooks(:worker_lost, child.slot)
      end
      return if child.booted? && now - child.started_at > EARLY

      delay = @back_off.fail
      @log.next_attempt(delay) if delay.positive?
    end

    def run_hooks(name, *arguments)
      @service.configuration.hooks.run(name, *arguments, log: @log)
    end

    def shutdown_timeout = @service.configuration.shutdown_timeout

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
