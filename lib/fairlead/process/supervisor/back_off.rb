# frozen_string_literal: true

module Fairlead
  class Supervisor
    # When the next worker may be forked after workers have died young: the first replacement at once, the following ones
    # after 1, 2, 4 … seconds. What lies a minute back is forgotten.
    class BackOff
      LONGEST = 30
      MEMORY = 60

      # +clock+: returns the time in seconds.
      def initialize(&clock)
        @clock = clock
        @failures = 0
        @last = @until = clock.call
      end

      # Counts a worker that died young; returns the seconds until the next attempt.
      def fail
        now = @clock.call
        @failures = 0 if now - @last > MEMORY
        @failures += 1
        @last = now
        delay = @failures == 1 ? 0 : [2**(@failures - 2), LONGEST].min
        @until = now + delay
        delay
      end

      # Seconds until the next worker may be forked; nil when it may be now.
      def remaining
        rest = @until - @clock.call
        rest if rest.positive?
      end
    end
  end
end
