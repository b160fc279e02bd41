# frozen_string_literal: true

module Fairlead
  module Tls
    # Decides when the files of one address are read again: when they have changed and then stayed the same for a while, because
    # a key and its certificate are replaced one after the other; but not later than LONGEST after the change, because a file
    # may change all the time. Files that could not be read are tried again, less and less often. Looks at thousands of files take
    # long, so they are further apart.
    class Settling
      # Seconds until the next look after a change, and seconds that the files have to stay the same.
      STEP = 1
      LONGEST = 10

      # The longest time between two failing attempts, in seconds.
      LONGEST_RETRY = 60

      # The share of the CPU time of a processor that looks take at most, as long as they need not be more than so many seconds apart.
      SHARE = 0.01
      LONGEST_INTERVAL = 60

      # Seconds between two looks, at least; 0 for none.
      attr_writer :interval

      # +signature+: the state of the files that was read.
      def initialize(signature)
        @interval = @cost = 0
        @seen = @tried = signature
        @failures = 0
      end

      # True if the files have to be read. +signature+: their state at the time +now+.
      def due?(signature, now)
        rests = signature == @seen
        @seen = signature
        if signature == @tried
          @changed_at = nil
          return failed? && now >= @retry_at
        end

        @changed_at ||= now
        rests || now - @changed_at >= LONGEST
      end

      # Notes the CPU time of a look, in seconds.
      def looked(cost)
        @cost = cost
      end

      # Notes an attempt. +signature+: the state of the files before it.
      def tried(signature, now, failed:)
        @tried = signature
        @changed_at = nil
        @failures = failed ? @failures + 1 : 0
        @retry_at = now + [2**(@failures - 1), LONGEST_RETRY].min if failed
      end

      # True if the last attempt has failed.
      def failed? = @failures.positive?

      # Seconds until the next look; nil for never.
      def pause(now)
        pauses = [(interval if @interval.positive?), (STEP if @changed_at), (@retry_at - now if failed? && @changed_at.nil?)]
        pauses.compact.min&.clamp(0.001, nil)
      end

      private

      def interval = [@interval, [@cost / SHARE, LONGEST_INTERVAL].min].max
    end
  end
end
