# frozen_string_literal: true

module Bench
  module Growth
    # Requests that have n of something: header fields, bytes in the path, in a cookie or in the body, chunks,
    # parts of a form.
    class Requests
      # Requests in a batch: so many bytes, between a least and a most.
      BYTES = 20_000_000
      REQUESTS = (50..1000)
      # The same in parts of forms: the application takes much longer for a part than the server for a byte.
      PARTS = 20_000

      # The block returns the parts of a request for a number: `fields`, `path`, `query`, `body`, `chunks`, or `form`.
      def initialize(name, &parts)
        @name = name
        @parts = parts
      end

      def warm_up(target)
        figures(target, 1)
      end

      def figures(target, count)
        parts = @parts.call(count)
        cost = Cost.new(target.running.group)
        number = ((parts[:form] ? PARTS : BYTES) / count).clamp(REQUESTS.min, REQUESTS.max)
        each = cost.each(number) { parts[:chunks] || parts[:form] ? upload(target, parts, number) : load(target, parts, number) }
        { @name => each, "memory, MiB" => target.running.group.memory_kib / 1024.0 }
      end

      private

      def load(target, parts, number)
        path = "#{parts.fetch(:path, target.path)}#{"?#{parts[:query]}" if parts[:query]}"
        line = ["1 request", parts[:body] ? "POST" : "GET", path, *parts[:body]].join(" ")
        file = target.running.site.write("requests", line)
        all, = target.load_tool.mix(target.running.url(path), file: file, fields: parts.fetch(:fields, {}), connections: 1, seconds: nil,
                                                              requests: number)
        raise Error, "requests failed: #{all.errors}" if all.error_count.positive?
      end

      # Each chunk is a packet; a form is one, with its head.
      def upload(target, parts, number)
        client = IdleConnections.new(target.running.port, tls: nil)
        number.times { parts[:form] ? client.send_form(target.path, parts[:form]) : client.upload(target.path, parts[:chunks]) }
      ensure
        client&.close
      end
    end
  end
end
