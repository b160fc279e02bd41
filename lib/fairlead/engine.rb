# frozen_string_literal: true

module Fairlead
  # The native engine of a process and the Ruby threads on which it runs the application. The engine says when it needs
  # another thread, and ends all threads when it is drained or stopped.
  class Engine
    autoload :LateRequests, "fairlead/engine/late_requests"
    autoload :Threads, "fairlead/engine/threads"

    include Threads

    # Seconds that the blocks of :shutdown run before the engine begins to drain; then both run side by side.
    HEAD_START = 1

    # Seconds in which the threads have to end once the engine is stopped.
    THREAD_GRACE = 1

    # Seconds in which requests have to end after ForcedShutdown has been raised in them.
    FORCED_GRACE = 2

    # Seconds between two searches for streams that no object can close, while requests end.
    SEARCH = 1

    # +shared+: the scoreboard of the server (Native::Shared), or nil if no other process reads it. +slot+: the slot of this
    # process. +generation+: of its worker, by which clients migrate to newer workers only.
    def initialize(service, shared: nil, slot: 0, generation: 0)
      @service = service
      @shared = shared
      @slot = slot
      @generation = generation
      @threads = []
      @started = 0
      @lock = Mutex.new
      @created = Thread::Queue.new
      @stopping = ConditionVariable.new
      @late_requests = LateRequests.new(service)
      @ending = @stopped = false
      @finished = false
      @aborts_told = @failure_told = false
      @unserved_at = nil
      @pid = nil
    end

    # Starts serving; returns at once. The engine has its own descriptors for the listeners, and closes them when it drains.
    def start
      @pid = Process.pid
      ProcessEnd.watch
      run_hooks(:boot)
      @lines = @service.engine_lines
      own_settings = { set_request_timeout: @late_requests.method(:set), generation: @generation }
      settings = @service.engine_settings(@lines).merge(own_settings)
      @native = Native::Engine.new(@service.app, @service.engine_listeners, settings, @shared, @slot) do |started|
        masked { started << add_thread unless ProcessEnd.begun? }
      end
      Stats.add(@native, (@shared if @service.configuration.supervised?))
      @late_requests.start(@native)
      @created.close
      masked { start_threads(@native.initial_threads) }
      Background.current.started(self, @service.log)
      started = self
    ensure
      give_up unless started
    end

    # Finishes requests that have arrived, for up to +seconds+ (nil: without a limit), and ends. Then ForcedShutdown is raised
    # in requests that still run. Returns false if requests were aborted.
    #
    # +delay+: seconds before the drain in which connections are still accepted, but each response ends its connection. Load
    # balancers have this time to notice the coming end. +migrate+: other workers go on, and get the connections. +stay+: seconds
    # for which WebSockets and event streams stay if their connection cannot move (HTTP/2). +patient+: clients stay as long if the
    # application does not hand them over, and hijacked connections count as requests; timers go on. +ending+: the inodes of the listeners
    # that end with this engine (Listener#ending). +heartbeat+: called every second until then. The block is called once all requests are
    # finished.
    def drain(seconds, delay: 0, migrate: false, ending: [], patient: false, heartbeat: nil, **retirement)
      return true unless own_process?

      @native.end_listeners(ending) if ending.any?
      return false unless delay.zero? || leave(delay)

      @ending = true
      limit = limit_drain(seconds)
      print_backtraces(:always)
      Background.current.draining(self, migrate: migrate, patient: patient)
      start_shutdown_hooks([seconds, HEAD_START].compact.min)
      drain_native(seconds, migrate: migrate, patient: patient, **retirement)
      drained = wait_for_requests(limit, heartbeat)
      limit.wait { |rest| @shutdown_hooks.nil? || @shutdown_hooks.join(rest) }
      drained ? @aborts_told = true : force_end
      yield if block_given?
      stop
      drained
    end

    # Workers of another version go on in place of this one and its siblings. +ios+: the queues of connections and of clients to which
    # they listen.
    def heirs=(ios)
      @native.set_heirs(*ios.map(&:fileno)) if own_process?
    end

    # Shortens a drain to +seconds+ from now on. +migrate+: false if the other workers end, too.
    def hurry(seconds, migrate: false)
      return unless own_process?

      @lock.synchronize do
        @hurry = [seconds, migrate]
        @limit&.shorten(seconds)
      end
      drain_native if @drains
    end

    # Closes all connections now.
    def stop
      return unless own_process? && @native

      tell_of_aborted
      @ending = @stopped = true
      @lock.synchronize { @stopping.broadcast }
      @shutdown_hooks&.kill
      @late_requests.stop
      @native.stop
      deadline = Clock.now + THREAD_GRACE
      threads.each { |thread| thread.join([deadline - Clock.now, 0].max) || thread.kill }
      @lines.close(written: @native.close_logs)
      Stats.remove(@native)
      @native.release
      finish_once
    end

    def stats = @native.stats

    # True if +thread+ runs requests or blocks of :shutdown, so that the engine waits for it before it ends.
    def runs?(thread) = own_process? && (thread == @shutdown_hooks || threads.include?(thread))

    private

    # The start has failed.
    def give_up
      @created.close
      @native ? stop : @lines&.close
    end

    # Serves for the last +seconds+. Returns false if the engine has been stopped meanwhile.
    def leave(seconds)
      @native.leave
      @lock.synchronize do
        RunningTime::Limit.new(seconds).wait { |rest| @ending || (@stopping.wait(@lock, rest) && @ending) }
      end
      !@ending
    end

    def limit_drain(seconds)
      @lock.synchronize { @limit = RunningTime::Limit.new([seconds, @hurry&.first].compact.min) }
    end

    # As for #drain, unless #hurry has been called.
    def drain_native(seconds = nil, migrate: false, stay: 0, patient: false)
      @lock.synchronize do
        seconds, migrate, stay, patient = *@hurry, 0, false if @hurry
        @drains = true
        migrate ? @native.retire(stay, seconds, patient) : @native.drain
      end
    end

    def wait_for_requests(limit, heartbeat)
      search = KeptStreams::Search.new
      limit.wait do |rest|
        heartbeat&.call
        search.step
        @native.wait([rest, SEARCH].compact.min)
      end
    end

    # Waits for the blocks of :shutdown, but not for longer than +head_start+.
    def start_shutdown_hooks(head_start)
      @lock.synchronize { @shutdown_hooks ||= Thread.new { run_hooks(:shutdown) } }
    rescue ThreadError # there is no room for a thread
      run_hooks(:shutdown)
    else
      @shutdown_hooks.join(head_start)
    end

    def force_end
      print_backtraces(:forced)
      abort_requests
    end

    def print_backtraces(occasion)
      Backtraces.print(@service.log) if @service.configuration.shutdown_backtraces == occasion
    end

    # Raises in the threads that run requests, so that each client gets a 503 and the application can clean up.
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

    # False in a process that the application has forked, which must not use the engine. If a request has forked it, the process
    # ends with its only thread.
    def own_process? = Process.pid == @pid

    def run_hooks(name) = @service.configuration.hooks.run(name, log: @service.log)
  end
end
