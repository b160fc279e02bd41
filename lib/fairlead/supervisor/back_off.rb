# frozen_string_literal: true

module Fairlead
  class Supervisor
    # When the next worker may be forked after workers have died while they booted: the first replacement at once, the
    # following ones after 1, 2, 4 … seconds. A worker that gets ready ends the waiting.
    class BackOff
      LONGEST = 30

      # +clock+: returns the time in seconds.
      def initialize(&clock)
        @clock = clock
        succeed
      end

      # Counts a worker that died while it booted; returns the seconds until the next attempt.
      def fail
        @failures += 1
        delay = @failures == 1 ? 0 : [2**(@failures - 2), LONGEST].min
        @until = @clock.call + delay
        delay
      end

      def succeed
        @failures = 0
        @until = nil
      end

      # Seconds until the next worker may be forked; nil when it may be now.
      def remaining
        rest = @until && (@until - @clock.call)
        rest if rest&.positive?
      end
    end
  end
end
