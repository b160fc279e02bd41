# frozen_string_literal: true

module Fairlead
  # The timers of a process, and the thread that waits for the next one; it starts with the first timer. The blocks are
  # deferred, so they take turns with the requests. Timers wait until a server begins to serve, which is when their time
  # starts to count, and they end with the last server.
  class Timers
    # +background+: runs the blocks. If there is a block, it is the clock: it returns seconds.
    def initialize(background, &clock)
      @background = background
      @clock = clock || -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @waiting = []
      @schedule = [] # [time, number, timer], the next one first
      @number = 0
      @running = false
    end

    # Runs +block+ once, that many seconds from now.
    def after(seconds, block) = add(seconds, 1, block)

    # Runs +block+ every +seconds+, +repetitions+ times; nil or 0 for no end.
    def every(seconds, repetitions, block)
      seconds = Float(seconds)
      raise ArgumentError, "the interval must be longer than 0 s" unless seconds.positive?

      repetitions = Integer(repetitions || 0)
      raise ArgumentError, "the number of repetitions must not be negative" if repetitions.negative?

      add(seconds, repetitions.nonzero?, block)
    end

    # --- for Timer

    def remove(timer)
      @lock.synchronize do
        @waiting.delete(timer)
        @schedule.delete_if { |_, _, scheduled| scheduled.equal?(timer) }
      end
    end

    def running? = @running

    def failed(error) = @background.log.timer_failed(error)

    # --- for Background

    # Starts the waiting timers.
    def start
      @lock.synchronize do
        @running = true
        @inherited ||= @waiting.dup
        @waiting.each { |timer| schedule(timer, now + timer.seconds) }
        @waiting.clear
        ensure_thread if @schedule.any?
      end
    end

    # The timers of before the first start wait again, unless they were cancelled.
    def renew
      @lock.synchronize { @waiting = (@inherited || []).select(&:renew) }
    end

    # Ends every timer.
    def stop
      @lock.synchronize do
        @running = false
        @schedule.each { |_, _, timer| timer.finish }
        @schedule.clear
        @changed.broadcast
        @thread = nil
      end
    end

    private

    def add(seconds, repetitions, block)
      raise ArgumentError, "a timer needs a block" unless block

      seconds = Float(seconds)
      raise ArgumentError, "the time must be finite and not negative, not #{seconds} s" unless seconds.finite? && !seconds.negative?

      timer = Timer.new(self, seconds, repetitions, block)
      @lock.synchronize { @running ? schedule(timer, now + seconds) : @waiting.push(timer) }
      timer
    end

    # Inserts it in order of time, most often at the end. Timers for the same moment keep their order.
    def schedule(timer, time)
      entry = [time, @number += 1, timer]
      position = @schedule.bsearch_index { |other| (other <=> entry).positive? } || @schedule.size
      @schedule.insert(position, entry)
      ensure_thread
      @changed.signal if position.zero?
    end

    # A forked process does not have the thread.
    def ensure_thread
      @thread = Thread.new { defer_due_timers }.tap { |thread| thread.name = "fairlead timers" } unless @thread&.alive?
    end

    def defer_due_timers
      while (timer = @lock.synchronize { wait })
        @background.defer(timer)
      end
    end

    # Waits until a timer is due and returns it; nil once this thread is no longer needed.
    def wait
      while @thread.equal?(Thread.current)
        time, = @schedule.first
        rest = time && (time - now)
        if rest.nil? || rest.positive?
          @changed.wait(@lock, rest)
        else
          timer = take
          return timer if timer
        end
      end
    end

    # Takes out the timer that is due and schedules its next run. Runs that were missed are skipped: the next one is at the
    # next multiple of the interval.
    def take
      time, _, timer = @schedule.shift
      counts = timer.count_run
      schedule(timer, time + ((((now - time) / timer.seconds).floor + 1) * timer.seconds)) if timer.again?
      timer if counts
    end

    def now = @clock.call
  end
end
