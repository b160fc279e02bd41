# frozen_string_literal: true

module Bench
  module Growth
    # Servers with n threads or n workers under the same load: the cost of a request, and of a second without one.
    class Shapes
      REQUESTS = 2000
      CLIENTS = 8

      # The block returns the Shape for a number.
      def initialize(&shape)
        @shape = shape
      end

      def figures(target, count)
        target.running.with_another(@shape.call(count)) do |running|
          cost = Cost.new(running.group)
          load(target, running)
          idle, wake_ups = cost.of_a_second
          { "request, µs" => cost.each(REQUESTS) { load(target, running) }, "CPU while idle, µs" => idle, "wake-ups while idle, 1/s" => wake_ups,
            "memory, MiB" => running.group.memory_kib / 1024.0 }
        end
      end

      private

      def load(target, running)
        found = target.load_tool.measure(running.url(target.path), connections: CLIENTS, seconds: nil, requests: REQUESTS)
        raise Error, "requests failed: #{found.errors}" if found.error_count.positive?
      end
    end
  end
end
