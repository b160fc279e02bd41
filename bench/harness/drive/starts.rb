# frozen_string_literal: true

module Bench
  module Drive
    # Starts the server repeatedly, with a single request: measures the time from the command to the response. The
    # server that runs already has brought the files into the page cache.
    class Starts
      EACH = 5

      def units
        { many: "starts", one: "start" }
      end

      def speaks?(_dialect, _shape)
        true
      end

      def warm_up(target, _seconds)
        target.running.time_another
      end

      def measure(target, _seconds)
        taken = Array.new(EACH) { target.running.time_another }
        Measurement.new(requests: EACH, seconds: taken.sum, errors: {}, starts_ms: taken.map { |seconds| seconds * 1000 })
      end

      def problem(_found); end

      def summary(found)
        format("%.0f ms to the first response", found.start_ms)
      end
    end
  end
end
