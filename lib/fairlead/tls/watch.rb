# frozen_string_literal: true

module Fairlead
  module Tls
    # A thread that looks after the certificates of a server inside another program, which has no main loop of its own.
    class Watch
      # +offers+: an Offers.
      def initialize(offers)
        @offers = offers
        @lock = Mutex.new
        @wake = ConditionVariable.new
        @thread = Thread.new { look } if offers.pause
        @thread&.name = "fairlead certificates"
      end

      def stop
        return unless @thread

        @lock.synchronize do
          @ending = true
          @wake.signal
        end
        @thread.join
      end

      private

      def look
        @lock.synchronize do
          until @ending
            @offers.look
            @wake.wait(@lock, @offers.pause)
          end
        end
      end
    end
  end
end
