# frozen_string_literal: true

module Bench
  module Drive
    # HTTP requests; each connection sends the next one when it has its response.
    class Requests
      def initialize(answer_bytes:, requests_each: nil)
        @answer_bytes = answer_bytes
        @requests_each = requests_each
      end

      def units
        { many: "requests", one: "request" }
      end

      # A warm-up that ends by time leaves unfinished requests; if the app takes long for them, a number of requests
      # ends it.
      def warm_up(target, seconds)
        load(target, seconds, @requests_each && 2)
      end

      # If the app holds its threads for long, a number of requests is exact, while a time limit would cut off the last
      # batch.
      def measure(target, seconds)
        load(target, seconds, @requests_each)
      end

      def requests_at_once(shape) = shape.connections

      # Duration or number of requests of `measure`, for a simulation.
      def extent(shape, seconds)
        Simulation::Extent.new(lead: 0, seconds: seconds, requests: @requests_each && @requests_each * shape.connections)
      end

      def problem(found)
        return "no request got a response" if found.requests.zero?

        "responses were truncated" if found.bytes < found.requests * @answer_bytes
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
