# frozen_string_literal: true

module Bench
  module Growth
    # n clients that read nothing of their responses, beside one client that sends a request at a time: the cost of its requests, of such a
    # response, and of its end, when the client reads it after all.
    class SlowReaders
      PATH = "/large"
      # Much more than sockets hold, and more than `response_memory_bytes`, which the scenario lowers.
      BYTES = 300_000
      REQUESTS = 1000

      def warm_up(target)
        figures(target, 10)
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        clients = nil
        response = cost.once(count) { clients = Clients.open(count) { Clients::SlowReader.new(target, path: PATH) } }
        beside = beside(target, cost)
        ending = cost.once(count) { clients.each(&:finish) }
        { "response to a slow reader, µs" => response, **beside, "the end of the response, which it reads, µs" => ending }
      ensure
        clients&.each(&:close)
        cost&.wait_until_quiet
      end

      private

      def beside(target, cost)
        idle, = cost.of_a_second
        memory = target.running.group.memory_kib / 1024.0
        request = cost.each(REQUESTS) { active(target) }
        { "request beside them, µs" => request, "CPU of an idle second, µs" => idle, "memory, MiB" => memory }
      end

      def active(target)
        found = target.load_tool.measure(target.url, connections: 1, seconds: nil, requests: REQUESTS)
        raise Error, "requests beside them failed: #{found.errors}" if found.error_count.positive?
      end
    end
  end
end
