# frozen_string_literal: true

module Fairlead
  class Supervisor
    # When the next worker may be forked after workers have died early: the first replacement at once, the following ones
    # after 1, 2, 4 … seconds. After a minute without such deaths it starts over.
    class BackOff
      LONGEST = 30
      MEMORY = 60

      # +clock+: returns the time in seconds.
      def initialize(&clock)
        @clock = clock
        @failures = 0
        @last = @until = clock.call
      end

      # The number of failures that count.
      attr_reader :failures

      # Other code is going to be started: what came before says nothing about it.
      def forgive
        @failures = 0
        @until = @clock.call
      end

      # Whether what was started at that time has failed together with others, of which one counts already.
      def counted?(started_at) = @failures.positive? && started_at < @last

      # Counts a worker that died early; returns the seconds until the next attempt. +started_at+: when it was started. It may have
      # taken minutes to fail.
      def fail(started_at = @clock.call)
        now = @clock.call
        @failures = 0 if started_at - @last > MEMORY
        @failures += 1
        @last = now
        delay = @failures == 1 ? 0 : [2**(@failures - 2), LONGEST].min
        @until = now + delay
        delay
      end

      # Seconds until the next worker may be forked; nil if it may be forked now.
      def remaining
        rest = @until - @clock.call
        rest if rest.positive?
      end
    end
  end
end
