# frozen_string_literal: true

module Bench
  module Growth
    # n connections that the server closes in the same second: their keep-alive timeout, or the timeout of their request heads, begins at the
    # same time. The cost of closing one, and the longest response of another client meanwhile.
    class TimeOuts
      SECONDS = 3
      # Requests a second of the other client.
      RATE = 200
      # Seconds until all have been closed at the latest.
      PATIENCE = 30

      Kind = Struct.new(:bytes, :answered, :arguments, :nginx, keyword_init: true)

      KINDS = {
        "keep-alive timeout" => Kind.new(bytes: "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", answered: true,
                                         arguments: ["--keep-alive-timeout", SECONDS.to_s], nginx: "keepalive_timeout #{SECONDS}s;"),
        "head timeout" => Kind.new(bytes: "GET / HTTP/1.1\r\nhost: 127", answered: false,
                                   arguments: ["--head-timeout", SECONDS.to_s], nginx: "client_header_timeout #{SECONDS}s;")
      }.freeze

      def figures(target, count)
        KINDS.reduce({}) { |found, (name, kind)| found.merge(of_kind(target, count, name, kind)) }
      end

      private

      def of_kind(target, count, name, kind)
        target.running.site.write("nginx-server.conf", kind.nginx)
        target.running.with_another(arguments: target.running.server.name == "fairlead" ? kind.arguments : []) do |running|
          mine = target.dup.tap { |one| one.running = running }
          expire(mine, 10, kind) # the first time, code and memory are new
          cost = Cost.new(running.group)
          each = Array.new(Cost::BATCHES) { cost_of_expiry(mine, cost, count, kind) }.min
          { "#{name} of one, µs" => each, "longest response while n have a #{name}, ms" => longest_beside(mine, count, kind) }
        end
      end

      def expire(target, count, kind)
        clients = let_wait(target, count, kind)
        wait_until_closed(clients)
      ensure
        clients&.each(&:close)
      end

      # Without the cost of opening them.
      def cost_of_expiry(target, cost, count, kind)
        clients = let_wait(target, count, kind)
        cost.once(count) { wait_until_closed(clients) }
      ensure
        clients&.each(&:close)
      end

      # The load begins when all are idle, and ends after all are closed.
      def longest_beside(target, count, kind)
        clients = let_wait(target, count, kind)
        seconds = SECONDS + 2
        load = Thread.new { target.load_tool.measure(target.url, connections: 1, seconds: nil, requests: RATE * seconds, rate: RATE) }
        load.report_on_exception = false
        wait_until_closed(clients)
        load.value.longest
      ensure
        clients&.each(&:close)
        load&.join
      end

      def let_wait(target, count, kind)
        clients = Clients.open(count) { Clients::Silent.new(target) }
        clients.each { |client| client.say(kind.bytes) }
        clients.each(&:answer) if kind.answered
        clients
      end

      def wait_until_closed(clients)
        deadline = now + PATIENCE
        clients.each do |client|
          raise Error, "connections were not closed in time" unless client.wait_until_closed(deadline - now)
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
