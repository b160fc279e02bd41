# frozen_string_literal: true

module Bench
  module Growth
    # n requests that wait for a thread, because each thread runs a request that waits for the lock of the file `gate`: the cost of a request
    # that joins them and leaves, of the time that they wait, and of serving them, which takes 1 ms for each (bench/apps/growth.ru).
    class Waiting
      LEAVERS = 500
      # Requests on one connection of HTTP/2.
      STREAMS = 100
      PATH = "/held"

      # +http2+: as requests for event streams over HTTP/2, which the application answers like others. +clients+: each request comes from a
      # client of its own for fair_by "x-client".
      def initialize(http2: false, clients: false)
        @http2 = http2
        @clients = clients
        @number = 0
      end

      def warm_up(target)
        serve(target, 10)
      end

      # A request may stay in the waiting room although its client has left, so no other figure follows.
      def figures(target, count)
        cost = Cost.new(target.running.group)
        served = with(target, cost, count) do |waiting, gate, waited|
          serving(target, cost, count, waiting, gate).merge("CPU of a second of waiting, µs" => waited)
        end
        return served if @http2

        left = with(target, cost, count) { |_, _, waited| { "to join them and leave, µs" => leave(target, cost, waited) }.compact }
        served.merge(left)
      end

      private

      # Yields so many waiting requests, the gate, and the CPU time of a second in which they wait.
      def with(target, cost, count)
        behind_gate(target, cost) do |gate|
          waiting = ask(target, count)
          cost.wait_until_quiet
          Clients.check(waiting) if @http2 # reads the settings and confirms them
          cost.wait_until_quiet
          yield waiting, gate, cost.of_a_second.first
        ensure
          waiting&.each(&:close)
        end
      end

      def serving(target, cost, count, waiting, gate)
        memory = target.running.group.memory_kib / 1024.0
        each = cost.once(count + target.shape.concurrency) do # with the requests inside
          gate.flock(File::LOCK_UN)
          waiting.each(&:opened)
        end
        { "to serve one, µs" => each, "memory, MiB" => memory }
      end

      # Yields the gate once each thread waits for it; waits until their requests are served.
      def behind_gate(target, cost)
        File.open(target.running.site.path("gate"), "w") do |gate|
          gate.flock(File::LOCK_EX)
          held = ask(target, target.shape.concurrency)
          cost.wait_until_quiet
          yield gate
        ensure
          gate.flock(File::LOCK_UN)
          held&.each(&:opened)&.each(&:close)
          cost.wait_until_quiet
        end
      end

      def serve(target, count)
        ask(target, count).each(&:opened).each(&:close)
      end

      # Sends so many requests.
      def ask(target, count)
        IdleConnections.allow_descriptors(count)
        return Array.new(count) { Clients::Http1.new(target, head: head) } unless @http2

        full, rest = count.divmod(STREAMS)
        [*Array.new(full, STREAMS), rest].reject(&:zero?).map do |streams|
          Http2Client.new(target, path: PATH, fields: { "accept" => "text/event-stream" }, streams: streams)
        end
      end

      def head
        field = "x-client: #{@number += 1}\r\n" if @clients
        "GET #{PATH} HTTP/1.1\r\n#{field}"
      end

      # The median of three, because the background is not exact. Nil for a server that leaves connections to the kernel while it is busy:
      # the listener is full soon.
      def leave(target, cost, background)
        found = Array.new(3) do
          cost.beyond(background, LEAVERS) do
            leavers = ask(target, LEAVERS)
            cost.wait_until_quiet
            leavers.each(&:reset)
          end
        end
        found.sort[1]
      rescue Errno::ETIMEDOUT
        nil
      end
    end
  end
end
