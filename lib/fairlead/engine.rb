# frozen_string_literal: true

module Fairlead
  # The native engine of a process and the Ruby threads on which it runs the application. The engine says when it needs
  # another thread, and ends all threads when it is drained or stopped.
  class Engine
    # How long the blocks of :shutdown run before the engine begins to drain, in seconds; then they run beside it.
    HEAD_START = 1

    # How long the threads may take to end once the engine has been stopped, in seconds.
    THREAD_GRACE = 1

    # How long requests may take to end after ForcedShutdown has been raised in them, in seconds.
    FORCED_GRACE = 2

    # Pause before another attempt to start a thread in the place of one that ends, in seconds.
    RETRY_PAUSE = 0.1

    # How far a thread has come: +serves+ once the native engine counts it itself, +dismissed+ once that needs it no more.
    Progress = Struct.new(:name, :serves, :dismissed, :raised) do
      def killed? = serves && !dismissed && !raised
    end
    private_constant :Progress

    # How long nobody takes the place of a thread that has ended before it served, if that happens again, in seconds.
    PAUSE = 1

    # +shared+: the scoreboard of all workers (Native::Shared), or nil without workers. +slot+: this worker's number.
    def initialize(service, shared: nil, slot: 0)
      @service = service
      @shared = shared
      @slot = slot
      @threads = []
      @started = 0
      @lock = Mutex.new
      @created = Thread::Queue.new
      @stopping = ConditionVariable.new
      @ending = false
      @finished = false
      @aborts_told = @failure_told = false
      @unserved_at = nil
      @pid = nil
    end

    # Starts serving; returns at once. It has descriptors of its own for the listeners, and closes them when it drains.
    def start
      @pid = Process.pid
      run_hooks(:boot)
      @lines = @service.engine_lines
      settings = @service.engine_settings(@lines)
      @native = Native::Engine.new(@service.app, @service.engine_listeners, settings, @shared, @slot) do |started|
        masked { started << add_thread }
      end
      Stats.add(@native, @shared)
      @created.close
      masked { start_threads(@native.initial_threads) }
      Background.current.started(self, @service.log)
      started = self
    ensure
      give_up unless started
    end

    # Finishes what has arrived, for up to +seconds+ (nil: as long as it takes), and ends. Then ForcedShutdown is raised in
    # requests that still run. Returns false if requests were aborted.
    #
    # +delay+: for so many seconds before, connections are still accepted, but each response ends its connection: time for
    # load balancers to notice that the server is going to end. +retire+: other workers go on, and get the connections.
    def drain(seconds, delay: 0, retire: false)
      return true unless own_process?
      return false unless delay.zero? || leave(delay)

      @ending = true
      limit = RunningTime::Limit.new(seconds)
      print_backtraces(:always)
      start_shutdown_hooks([seconds, HEAD_START].compact.min)
      retire ? @native.retire : @native.drain
      drained = limit.wait { |rest| @native.wait(rest) }
      limit.wait { |rest| @shutdown_hooks.join(rest) }
      drained ? @aborts_told = true : force_end
      stop
      drained
    end

    # Closes all connections now.
    def stop
      return unless own_process?

      tell_of_aborted
      @ending = true
      @lock.synchronize { @stopping.broadcast }
      @shutdown_hooks&.kill
      @native.stop
      deadline = now + THREAD_GRACE
      threads.each { |thread| thread.join([deadline - now, 0].max) || thread.kill }
      @lines.close(written: @native.close_logs)
      Stats.remove(@native)
      @native.release
      finish_once
    end

    def stats = @native.stats

    # Whether +thread+ runs requests or blocks of :shutdown, so that the engine waits for it before it ends.
    def runs?(thread) = own_process? && (thread == @shutdown_hooks || threads.include?(thread))

    private

    # The start has failed.
    def give_up
      @created.close
      @native ? stop : @lines&.close
    end

    # Serves for +seconds+, the last ones. Returns false if the engine has been stopped meanwhile.
    def leave(seconds)
      @native.leave
      @lock.synchronize do
        RunningTime::Limit.new(seconds).wait { |rest| @ending || (@stopping.wait(@lock, rest) && @ending) }
      end
      !@ending
    end

    # Waits for the blocks of :shutdown, but not for longer than +head_start+.
    def start_shutdown_hooks(head_start)
      Background.current.draining(self)
      @lock.synchronize { @shutdown_hooks ||= Thread.new { run_hooks(:shutdown) } }
      @shutdown_hooks.join(head_start)
    end

    def force_end
      print_backtraces(:forced)
      abort_requests
    end

    def print_backtraces(occasion)
      Backtraces.print(@service.log) if @service.configuration.shutdown_backtraces == occasion
    end

    # Raises in the threads that run requests, so that each client gets a 503 and the application can tidy up.
    def abort_requests
      busy = tell_of_aborted
      busy.each { |thread| thread.raise(ForcedShutdown, "the server ends, and the request has not") }
      RunningTime::Limit.new(FORCED_GRACE).wait { |rest| @native.wait(rest) } if busy.any?
    end

    # Logs each request that is aborted, once. Returns the threads that run them.
    def tell_of_aborted
      running = Native.current_requests.to_h.slice(*threads)
      log_aborted(running.values) unless @aborts_told
      @aborts_told = true
      running.keys
    end

    # The server ends even if a logger raises.
    def log_aborted(envs)
      envs.each { |env| @service.log.request_aborted(env) }
      waiting = @native.stats[:queued]
      @service.log.waiting_requests_aborted(waiting) if waiting.positive?
    rescue StandardError
      nil
    end

    # Called by #drain, and by a #stop that ends the drain early.
    def finish_once
      return if @lock.synchronize { @finished.tap { @finished = true } }

      Background.current.stopped(self)
      run_hooks(:stopped)
    end

    def threads = @lock.synchronize { @threads.dup }

    # The engine counts these threads already. Those that cannot be started are cancelled.
    def start_threads(count)
      started = 0
      count.times do
        add_thread
        started += 1
      end
    ensure
      (count - started).times { @native.cancel_thread }
    end

    # Starts a thread that the engine counts already. The engine calls this from any thread, even before Native::Engine.new has
    # returned, so a new thread waits for @created. To be called masked, which the thread inherits: one that is killed before it
    # begins still runs, and has itself replaced.
    def add_thread
      @lock.synchronize do
        progress = Progress.new("fairlead #{@started += 1}")
        thread = Thread.new { run_thread(progress) }
        thread.name = progress.name
        thread.report_on_exception = false
        @threads << thread
      end
    end

    # Puts interrupts from other threads (Thread#kill, Thread#raise) off until the block has ended.
    def masked(&) = Thread.handle_interrupt(Object => :never, &)

    # All code of the application, and all loggers, run in such a block: threads that they start must not be masked.
    def unmasked(&) = Thread.handle_interrupt(Object => :immediate, &)

    def run_thread(progress)
      unmasked { serve(progress) }
    ensure
      thread_ended(progress) if own_process?
    end

    def serve(progress)
      @created.pop
      run_hooks(:before_thread_start)
      @service.log.thread_serves(progress.name)
      progress.serves = true
      progress.dismissed = @native.run
    rescue Exception => e # rubocop:disable Lint/RescueException -- it would go unnoticed otherwise
      raise unless own_process?

      # The request in which that was to be raised may just have ended.
      @service.log.thread_died(progress.name, e) unless e.is_a?(ForcedShutdown)
      progress.raised = true
    end

    # False in a process that the application has forked, where nothing may be done with the engine. If that was in a request,
    # the process ends with its only thread.
    def own_process? = Process.pid == @pid

    def thread_ended(progress)
      unmasked do
        @service.log.thread_killed(progress.name) if progress.killed? && !@ending && !process_ends?
        run_hooks(:before_thread_exit)
        @service.log.thread_ends(progress.name)
      end
    ensure
      @lock.synchronize { @threads.delete(Thread.current) }
      replace_thread(counted: !progress.serves) unless progress.dismissed
    end

    # Starts a thread in the place of this one, which stays until that has succeeded: perhaps no other one is left that could try.
    # +counted+: whether the engine still counts this one, because it has never served.
    def replace_thread(counted:)
      return if process_ends?

      pause if counted
      if @ending
        @native.cancel_thread if counted
      elsif counted || @native.replace_thread
        start_threads(1)
      end
    rescue ThreadError, NoMemoryError => e
      tell_once(e)
      sleep RETRY_PAUSE
      counted = false # it has been cancelled
      retry
    end

    # No thread can be started, so a logger cannot start one either that would be masked.
    def tell_once(error)
      @service.log.thread_not_replaced(error) unless @lock.synchronize { @failure_told.tap { @failure_told = true } }
    end

    # A hook that ends each thread at its start must not keep the process busy with nothing else.
    def pause
      @lock.synchronize do
        again = @unserved_at && now - @unserved_at < PAUSE
        @stopping.wait(@lock, PAUSE) if again && !@ending
        @unserved_at = now
      end
    end

    # Whether the process ends: Ruby then kills every thread, and none is replaced.
    def process_ends? = !Thread.main.alive?

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def run_hooks(name) = @service.configuration.hooks.run(name, log: @service.log)
  end
end
