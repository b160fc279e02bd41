# frozen_string_literal: true

module Bench
  module Growth
    # n idle connections beside one client that sends a request at a time: the cost of its requests and of a new connection, of opening and
    # closing them, and the memory of the server.
    class Idle
      REQUESTS = 1000
      CONNECTIONS = 300
      # Rounds of opening and closing few connections.
      TURNS = 3

      # +kind+: that of the clients (Clients).
      def initialize(kind)
        @kind = kind
      end

      def warm_up(target)
        close(hold(target, 10))
        active(target, 200)
      end

      def figures(target, count)
        cost = Cost.new(target.running.group)
        opening, closing = turnover(target, cost, count)
        clients = hold(target, count)
        idle, = cost.of_a_second
        request = cost.each(REQUESTS) { active(target, REQUESTS) }
        connection = cost.each(CONNECTIONS) { active(target, CONNECTIONS, keep_alive: false) } unless target.http2?
        found = {
          "request beside them, µs" => request, "new connection beside them, µs" => connection,
          "to open one, µs" => opening, "to close one, µs" => closing, "CPU while idle, µs" => idle,
          "memory, MiB" => target.running.group.memory_kib / 1024.0
        }.compact
        Clients.check(clients)
        found
      ensure
        close(clients)
        cost&.wait_until_quiet
      end

      private

      def hold(target, count) = Clients.open(count) { Clients.public_send(@kind, target) }

      def close(clients) = clients&.each(&:close)

      # The cost of opening one, and of closing one. Clients that are there already stay.
      def turnover(target, cost, count)
        times = (200 / count).clamp(1, TURNS)
        found = Array.new(times) do
          clients = nil
          opening = cost.once(count) { clients = hold(target, count) }
          [opening, cost.once(count) { close(clients) }]
        end
        found.transpose.map { |ones| ones.sum / times }
      end

      def active(target, number, **how)
        how[:tls] = target.tls if target.tls
        how[:streams] = 1 if target.http2?
        found = target.load_tool.measure(target.url, connections: 1, seconds: nil, requests: number, **how)
        raise Error, "requests beside them failed: #{found.errors}" if found.error_count.positive?
      end
    end
  end
end
