# frozen_string_literal: true

module Fairlead
  # The timers of a process, and the thread that waits for the next one; it starts with the first timer, or before. The blocks are
  # deferred, so they take turns with the requests. Timers wait until a server begins to serve; then their time starts to count.
  # They end with the last server, or after it if nobody has asked for its end (#linger).
  class Timers
    # The shortest interval, in seconds. With less, the thread would do nothing else.
    LEAST_INTERVAL = 0.001

    # The longest wait of the thread, in seconds: ConditionVariable#wait does not take every number.
    LONGEST_WAIT = 3600

    # +background+: runs the blocks. If there is a block, it is the clock: it returns seconds.
    def initialize(background, &clock)
      @background = background
      @clock = clock || Clock.method(:now)
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @waiting = {}.compare_by_identity # timer => true
      @schedule = Schedule.new
      @running = false
      @latest = nil # the time at which the last timers end that linger
      @due = {}.compare_by_identity # timer => true, until its block begins to run
      @calls = 0
    end

    # Runs +block+ once, +seconds+ from now.
    def after(seconds, block) = add(seconds, 1, block)

    # Runs +block+ every +seconds+, +repetitions+ times; nil or 0 for no end.
    def every(seconds, repetitions, block)
      seconds = Float(seconds)
      raise ArgumentError, "the interval must be at least #{LEAST_INTERVAL} s, not #{seconds} s" unless seconds >= LEAST_INTERVAL

      repetitions = Integer(repetitions || 0)
      raise ArgumentError, "the number of repetitions must not be negative" if repetitions.negative?

      add(seconds, repetitions.nonzero?, block)
    end

    # Starts the thread that waits, if a server serves.
    def prepare
      @lock.synchronize { ensure_thread if @running } unless @thread&.alive?
    end

    # Number of timers that wait for the first server of this process.
    def waiting = @lock.synchronize { @waiting.size }

    # --- for Timer

    def remove(timer)
      @lock.synchronize { @waiting.delete(timer) || @schedule.cancelled }
    end

    def running? = @running

    # False if the block runs already, or must not run any more.
    def begin?(timer) = @lock.synchronize { @due.delete(timer) && @running }

    def failed(error) = @background.log.timer_failed(error)

    # --- for Background

    # Starts the waiting timers.
    def start
      @lock.synchronize do
        @running = true
        @inherited ||= @waiting.keys
        @waiting.each_key { |timer| schedule(timer, now + timer.seconds) }
        @waiting.clear
        ensure_thread unless @schedule.empty?
      end
    end

    # Timers from before the first start wait again, unless they were cancelled.
    def renew
      @lock.synchronize do
        @waiting.clear
        (@inherited || []).each { |timer| @waiting[timer] = true if timer.renew }
      end
    end

    # The server runs no blocks any more. Ends timers that repeat or are due after more than +seconds+. The thread of the timers runs the
    # blocks of the others, which copies of this process do not have.
    def linger(seconds)
      @lock.synchronize do
        next unless @running

        @latest = now + seconds
        @schedule.retain { |time, timer| lingers?(time, timer) || timer.finish }
        postponed = @due.each_key(&:postpone).keys
        @due.clear
        postponed.each { |timer| schedule(timer, now) }
      end
    end

    # Runs +job+ on the thread of the timers if the server runs no blocks any more. Returns false otherwise.
    def take_over(job)
      @lock.synchronize do
        next false unless @running && @latest

        schedule(Timer.new(self, 0.0, 1, job), now)
        true
      end
    end

    # True if such a timer waits or runs.
    def linger? = @lock.synchronize { !@latest.nil? && (@calls.positive? || !@schedule.next_time.nil?) }

    # Ends every timer.
    def stop
      @lock.synchronize do
        @running = false
        @latest = nil
        @due.clear
        @schedule.each_timer(&:finish)
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
      @lock.synchronize { @running ? schedule(timer, now + seconds) : @waiting[timer] = true }
      timer
    end

    def schedule(timer, time)
      return timer.finish unless @latest.nil? || lingers?(time, timer)

      is_next = @schedule.add(time, timer)
      ensure_thread
      @changed.signal if is_next
    end

    # A forked process does not have the thread.
    def ensure_thread
      @thread = Thread.new { defer_due_timers }.tap { |thread| thread.name = "fairlead timers" } unless @thread&.alive?
    end

    # If a timer raises an exception, it has been taken out already, so the others go on.
    def defer_due_timers
      while (timer = @lock.synchronize { wait })
        @latest ? call(timer) : @background.defer(timer)
      end
    rescue StandardError => e
      failed(e)
      retry
    ensure
      replace_thread unless ProcessEnd.begun?
    end

    def lingers?(time, timer) = timer.once? && time <= @latest

    def call(timer)
      @lock.synchronize { @calls += 1 }
      timer.call
    ensure
      @lock.synchronize { @calls -= 1 }
    end

    # The application has killed this thread, if timers go on.
    def replace_thread
      @lock.synchronize do
        next unless @thread.equal?(Thread.current)

        @thread = nil
        ensure_thread
      end
    rescue ThreadError
      nil # there is no room for one: the next timer tries again
    end

    # Waits until a timer is due and returns it; nil once this thread is no longer needed.
    def wait
      while @thread.equal?(Thread.current)
        time = @schedule.next_time
        rest = time && (time - now)
        if rest.nil? || rest.positive?
          @changed.wait(@lock, rest && [rest, LONGEST_WAIT].min)
        else
          timer = take
          return timer if timer
        end
      end
    end

    # Takes out the timer that is due and schedules its next run. Missed runs are skipped: the next run is at the next multiple
    # of the interval.
    def take
      time, timer = @schedule.take
      counts = timer.count_run
      schedule(timer, time + ((((now - time) / timer.seconds).floor + 1) * timer.seconds)) if timer.again?
      return unless counts

      @due[timer] = true
      timer
    end

    def now = @clock.call
  end
end
