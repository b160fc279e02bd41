# frozen_string_literal: true

module Bench
  module Simulation
    # Duration of a load, with the load tool's meaning: after `lead` seconds that are not counted, a number of
    # `seconds`, or a number of `requests` of all clients.
    Extent = Struct.new(:lead, :seconds, :requests, keyword_init: true)

    # The load of one run: permits requests, and counts requests sent after the lead that got their response before the
    # end.
    class Load
      # Simulated seconds after which a load that ends by number has failed.
      LONGEST = 600

      # Name of a kind => seconds of each of its requests.
      attr_reader :latencies

      def initialize(extent)
        @extent = extent
        @left = extent.requests
        @under_way = 0
        @last = 0.0
        @latencies = Hash.new { |all, name| all[name] = [] }
      end

      # True if a client may send another request.
      def take
        return true unless @left
        return false if @left.zero?

        @left -= 1
        @under_way += 1
        true
      end

      def answered(kind, asked, now)
        @under_way -= 1
        @last = now
        @latencies[kind.name] << now - asked if asked >= @extent.lead
      end

      def run(calendar)
        return calendar.run_until(@extent.lead + @extent.seconds) unless @left

        calendar.run_until(calendar.now + 1) until (@left + @under_way).zero? || calendar.now > LONGEST
      end

      # Counted seconds.
      def seconds
        @left ? @last : @extent.seconds
      end
    end
  end
end
