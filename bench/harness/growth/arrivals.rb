# frozen_string_literal: true

module Bench
  module Growth
    # n clients that connect at the same moment, each with one request: the time until they are served.
    class Arrivals
      def warm_up(target)
        arrive(target, 100)
      end

      def figures(target, count)
        IdleConnections.allow_descriptors(count)
        cost = Cost.new(target.running.group)
        found = Array.new(Cost::BATCHES) { arrive(target, count).tap { cost.wait_until_quiet } }
        { "until half of them are served, ms" => found.map { |one| one.percentile(50) }.min,
          "until all are served, ms" => found.map(&:longest).min }
      end

      private

      def arrive(target, count)
        found = target.load_tool.measure(target.url, connections: count, seconds: nil, requests: count, keep_alive: false)
        raise Error, "#{found.error_count} of #{count} were not served: #{found.errors}" if found.error_count.positive?

        found
      end
    end
  end
end
