# frozen_string_literal: true

module Fairlead
  # What a process does beside answering requests: deferred blocks, timers and subscriptions. All of it waits until a
  # server serves in this process and ends with the last one. What waits is inherited by a fork, so what an application
  # asks for while it is preloaded happens in every worker, and never in the supervisor.
  class Background
    class << self
      # That of this process.
      attr_reader :current
    end

    attr_reader :timers, :pub_sub

    # +native+: what stands in for Fairlead::Native, which is loaded when it is first needed.
    def initialize(native: nil)
      @native = native
      @lock = Mutex.new
      @engines = {}.compare_by_identity
      @pid = Process.pid
      @waiting = []
      @timers = Timers.new(self)
      @pub_sub = PubSub::Registry.new(self)
    end

    def native = @native || Native

    # The log of the server that started last.
    def log = @log ||= EventLog.new(quiet: true)

    # Has +job+ called by the engine, in turn with the requests; as soon as there is an engine.
    def defer(job)
      @lock.synchronize { native.defer(job) || @waiting.push(job) }
      nil
    end

    # --- for Engine

    # To be called once the engine takes jobs.
    def started(engine, log)
      @lock.synchronize do
        forget_engines_of_parent
        @log = log
        @engines[engine] = :serving
        @waiting.shift while @waiting.any? && native.defer(@waiting.first)
      end
      pub_sub.start
      timers.start
    end

    # To be called when the engine begins to drain.
    def draining(engine)
      @lock.synchronize { @engines[engine] &&= :draining }
      timers.stop unless @engines.value?(:serving)
    end

    # To be called once the engine's last connection is gone.
    def stopped(engine)
      draining(engine)
      @lock.synchronize { @engines.delete(engine) }
      pub_sub.stop if @engines.empty?
    end

    private

    # A program with a server may fork and start another one in the child.
    def forget_engines_of_parent
      @engines.clear unless @pid == Process.pid
      @pid = Process.pid
    end

    @current = new
  end
end
