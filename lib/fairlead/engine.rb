# frozen_string_literal: true

module Fairlead
  # The native engine of a process and the Ruby threads it runs the application on. The engine says when it can use one
  # more thread; it ends them all when it is drained or stopped.
  class Engine
    # How long the threads may take to leave once the engine has been stopped, in seconds.
    GRACE = 1

    # +shared+: the board of all workers (Native::Shared) and this one's +slot+ on it; nil without workers.
    def initialize(service, shared: nil, slot: 0)
      @service = service
      @shared = shared
      @slot = slot
      @threads = []
      @started = 0
      @lock = Mutex.new
      @created = Thread::Queue.new
      @ending = false
    end

    # Starts serving; returns at once.
    def start
      @native = Native::Engine.new(@service.app, @service.listeners.to_engine, @service.engine_settings, @shared, @slot) { add_thread }
      @service.listeners.close # the engine has descriptors of its own, and closes them when it drains
      Stats.add(@native, @shared)
      @created.close
      @native.initial_threads.times { add_thread }
      self
    end

    # Finishes what has arrived, for up to +seconds+ (nil: as long as it takes), and ends. False when something was cut off.
    def drain(seconds)
      @ending = true
      @native.drain
      drained = @native.wait(seconds)
      stop
      drained
    end

    # Closes everything now.
    def stop
      @ending = true
      @native.stop
      deadline = now + GRACE
      threads.each { |thread| thread.join([deadline - now, 0].max) || thread.kill }
      @native.flush_logs
      Stats.remove(@native)
    end

    def stats = @native.stats

    private

    def threads = @lock.synchronize { @threads.dup }

    # Called by the engine, from any thread and also before #start has its result; a new thread waits for that.
    def add_thread
      @lock.synchronize do
        name = "fairlead #{@started += 1}"
        thread = Thread.new { serve(name) }
        thread.name = name
        thread.report_on_exception = false
        @threads << thread
      end
    end

    def serve(name)
      @created.pop
      hooks.run(:before_thread_start, log: @service.log)
      @native.run
      sent_home = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- nobody else would ever hear of it
      @service.log.thread_died(name, e)
    ensure
      hooks.run(:before_thread_exit, log: @service.log)
      @lock.synchronize { @threads.delete(Thread.current) }
      add_thread unless sent_home || @ending || process_ends?
    end

    # Ruby then kills every thread, and none is to be replaced.
    def process_ends? = !Thread.main.alive?

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def hooks = @service.configuration.hooks
  end
end
