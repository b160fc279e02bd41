# frozen_string_literal: true

module Fairlead
  # The work of a process besides serving requests: deferred blocks, timers and subscriptions. They wait until a server serves
  # in this process, and end with the last one. A forked process inherits waiting ones. So blocks that an application registers
  # during preloading run in every worker, and never in the supervisor.
  class Background
    class << self
      # The Background of this process.
      attr_reader :current
    end

    attr_reader :timers, :pub_sub, :services

    # +native+: replaces Fairlead::Native in tests. Fairlead::Native is loaded when it is first used.
    def initialize(native: nil)
      @native = native
      @lock = Mutex.new
      @engines = {}.compare_by_identity
      @pid = Process.pid
      @waiting = []
      @services = []
      @timers = Timers.new(self)
      @pub_sub = PubSub::Registry.new(self)
    end

    def native = @native || Native

    # True if a server serves in this process.
    def serves? = @pid == Process.pid && @engines.any?

    # The log of the server that started last.
    def log = @log ||= EventLog.new(quiet: true)

    # Makes the engine call +job+, in turn with the requests, as soon as there is an engine. After its last request, timers that linger
    # run it.
    def defer(job)
      @lock.synchronize { timers.take_over(job) || native.defer(job) || @waiting.push(job) }
      nil
    end

    # Runs the block, and forgets jobs that wait since then: its requests are not requests of clients.
    def forget_jobs
      waiting = @lock.synchronize { @waiting.dup }
      yield
    ensure
      @lock.synchronize { @waiting = waiting }
    end

    # Starts a service, an object with #start, #stop and #statistics, whenever a server serves in this process.
    def add(service)
      serves = @lock.synchronize do
        @services += [service]
        serves?
      end
      service.start if serves
    end

    def remove(service)
      @lock.synchronize { @services -= [service] }
      service.stop
    end

    # --- for Engine

    # Called once the engine accepts jobs.
    def started(engine, log)
      @lock.synchronize do
        forget_engines_of_parent
        @log = log
        @engines[engine] = :serving
        @inherited ||= @waiting.dup
        @waiting.shift while @waiting.any? && native.defer(@waiting.first)
      end
      pub_sub.start
      @services.each(&:start)
      @lock.synchronize { timers.start if @engines.value?(:serving) }
    end

    # Called when the engine begins to drain. +migrate+: its clients are about to go to other processes. +patient+: nobody has asked for
    # the end, so that timers go on, until #stopped.
    def draining(engine, migrate: false, patient: false)
      @lock.synchronize do
        @engines[engine] &&= :draining
        timers.stop unless patient || @engines.value?(:serving)
      end
      pub_sub.migrating if migrate && !@engines.value?(:serving)
    end

    # Called once the engine's last connection is closed.
    def stopped(engine)
      draining(engine) unless @engines[engine] == :draining
      @lock.synchronize { @engines.delete(engine) }
      return unless @engines.empty?

      timers.stop

      @services.each(&:stop)
      pub_sub.stop
    end

    # Blocks from before the first server of this process wait again, for processes that are forked from now on. Blocks that
    # were added since have ended with that server.
    def renew
      @lock.synchronize { @waiting = @inherited.dup if @inherited }
      timers.renew
    end

    private

    # A program with a server may fork and start another server in the child.
    def forget_engines_of_parent
      @engines.clear unless @pid == Process.pid
      @pid = Process.pid
    end

    @current = new
  end
end
