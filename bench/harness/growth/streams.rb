# frozen_string_literal: true

module Bench
  module Growth
    # n streams at a time on one connection of HTTP/2: the cost of a request.
    class Streams
      REQUESTS = 5000
      MOST = 1000
      NGINX = "http2_max_concurrent_streams #{MOST};".freeze

      def warm_up(target)
        load(target, target.running, 10)
      end

      def figures(target, count)
        target.running.site.write("nginx-server.conf", NGINX)
        target.running.with_another do |running|
          cost = Cost.new(running.group)
          load(target, running, count)
          { "request, µs" => cost.each(REQUESTS) { load(target, running, count) }, "memory, MiB" => running.group.memory_kib / 1024.0 }
        end
      end

      private

      def load(target, running, streams)
        found = target.load_tool.measure(running.url(target.path), connections: 1, seconds: nil, requests: REQUESTS, streams: streams)
        raise Error, "requests failed: #{found.errors}" if found.error_count.positive?
      end
    end
  end
end
