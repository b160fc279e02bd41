# frozen_string_literal: true

module Bench
  module Growth
    # n idle connections beside one client that sends a request at a time: the cost of its requests and of a new connection, of opening and
    # closing them, and the memory of the server.
    class Idle
      REQUESTS = 1000
      CONNECTIONS = 300
      # Clients that come and go before the first are counted.
      FIRST = 50

      # +kind+: a kind of clients, see Clients.
      def initialize(kind)
        @kind = kind
      end

      def warm_up(target)
        close(hold(target, FIRST))
        active(target, 200)
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        clients = nil
        opening = cost.once(count) { clients = hold(target, count) }
        idle, = cost.of_a_second
        memory = target.running.group.memory_kib / 1024.0
        request = cost.each(REQUESTS) { active(target, REQUESTS) }
        connection = cost.each(CONNECTIONS) { active(target, CONNECTIONS, keep_alive: false) } unless target.http2?
        Clients.check(clients)
        closing = cost.once(count) { close(clients) }
        {
          "request beside them, µs" => request, "new connection beside them, µs" => connection, "to open one, µs" => opening,
          "to close one, µs" => closing, "CPU of an idle second, µs" => idle, "memory, MiB" => memory
        }.compact
      ensure
        close(clients)
        cost&.wait_until_quiet
      end

      private

      def hold(target, count) = Clients.open(count) { Clients.public_send(@kind, target) }

      def close(clients) = clients&.each { |client| client.close unless client.closed? }

      def active(target, number, **how)
        how[:tls] = target.tls if target.tls
        how[:streams] = 1 if target.http2?
        found = target.load_tool.measure(target.url, connections: 1, seconds: nil, requests: number, **how)
        raise Error, "requests beside them failed: #{found.errors}" if found.error_count.positive?
      end
    end
  end
end
