# frozen_string_literal: true

module Fairlead
  # Seconds in which this process could run. The monotonic clock also counts while the process is stopped: `docker pause`, a
  # frozen virtual machine, SIGSTOP. After such a pause every deadline would be over, although the process had no time to meet
  # it.
  #
  # The owner reads the clock at short intervals. A reading that is late by more than TOLERANCE shows a pause, minus the
  # processor time that the process has used: a thread that holds the GVL makes readings late, too.
  class RunningTime
    # Seconds by which a reading may be late before the delay counts as a pause.
    TOLERANCE = 0.25

    # Number of pauses to remember: more than fit into any timeout.
    MEMORY = 200

    # The time at the last reading.
    attr_reader :now

    # +used+: returns the processor time of the process. The block returns the time of the monotonic clock. Both in seconds.
    def initialize(used: Clock.method(:processor_time), &clock)
      @clock = clock || Clock.method(:now)
      @used = used
      @used_before = @used.call
      @now = @seen = @clock.call
      @pauses = []
    end

    # Reads the clock. +within+: the longest expected time since the last reading, in seconds. Returns the time.
    def look(within)
      seen = @clock.call
      passed = seen - @seen
      counted = passed - within > TOLERANCE ? [within + used_since, passed].min : passed
      note_pause(@seen + counted, seen) if counted < passed
      @used_before = @used.call
      @seen = seen
      @now += counted
    end

    # The part of the last +seconds+ of the monotonic clock in which the process could run. The pause may have been just now.
    def counted(seconds)
      present = @clock.call
      since = present - seconds
      pauses = present - @seen > TOLERANCE ? [*@pauses, [@seen, present]] : @pauses
      seconds - pauses.sum { |from, to| to > since ? to - [from, since].max : 0 }
    end

    private

    # Processor time since the last reading.
    def used_since = @used.call - @used_before

    def note_pause(from, to)
      @pauses << [from, to]
      @pauses.shift if @pauses.size > MEMORY
    end

    # A time limit that counts only running time.
    class Limit
      # The longest time between two readings, in seconds.
      STEP = 1.0

      # +seconds+: nil for no limit.
      def initialize(seconds)
        @rest = seconds
        @shorter = Thread::Queue.new
        @clock = RunningTime.new
      end

      # Any thread may call it. The rest is at most +seconds+ from now on. Noticed after the present step.
      def shorten(seconds) = @shorter.push(seconds)

      # Calls the block with the time for which it may wait, until the block returns a true value or the limit is reached.
      # Returns the last result of the block.
      def wait
        spend(STEP)
        loop do
          step = @rest && [@rest, STEP].min
          done = yield step
          spend(step)
          return done if done || @rest&.zero?
        end
      end

      private

      def spend(step)
        @rest = [@rest, @shorter.pop].compact.min until @shorter.empty?
        return unless @rest

        before = @clock.now
        @rest = [@rest - (@clock.look(step || STEP) - before), 0].max
      end
    end
  end
end
