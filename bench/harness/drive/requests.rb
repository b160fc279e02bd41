# frozen_string_literal: true

module Bench
  module Drive
    # HTTP requests, each connection making the next one when it has its answer.
    class Requests
      def initialize(answer_bytes:, requests_each: nil)
        @answer_bytes = answer_bytes
        @requests_each = requests_each
      end

      def units
        { many: "requests", one: "request" }
      end

      # A warm-up that time ends leaves requests behind it; where the app takes long for them, a number of requests ends it.
      def warm_up(target, seconds)
        load(target, seconds, @requests_each && 2)
      end

      # Where the app holds its threads long, a number of requests is exact while a time would cut the last batch off.
      def measure(target, seconds)
        load(target, seconds, @requests_each)
      end

      def requests_at_once(shape) = shape.connections

      # How long `measure` lasts, for a simulation.
      def extent(shape, seconds)
        Simulation::Extent.new(lead: 0, seconds: seconds, requests: @requests_each && @requests_each * shape.connections)
      end

      def problem(found)
        return "no request was answered" if found.requests.zero?

        "answers were cut short" if found.bytes < found.requests * @answer_bytes
      end

      def summary(found)
        format("%.0f/s  p99 %.2f ms", found.rate, found.percentile(99))
      end

      private

      def load(target, seconds, each)
        requests = each && each * target.connections
        target.load_tool.measure(target.url, connections: target.connections, seconds: seconds, requests: requests)
      end
    end
  end
end
