# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # A port that forwards to another one as over a long distance: bytes arrive half a round trip later, and a connection
    # takes a whole round trip.
    class DelayedRelay
      attr_reader :port

      def initialize(target, round_trip)
        @target = target
        @delay = round_trip / 2.0
        @server = TCPServer.new("127.0.0.1", 0)
        @port = @server.addr[1]
        @thread = Thread.new { loop { connected(@server.accept) } }
      end

      def close
        @thread.kill.join
        @server.close
      end

      private

      def connected(client)
        Thread.new do
          sleep @delay
          server = TCPSocket.new("127.0.0.1", @target)
          [[client, server], [server, client]].map { |from, to| pass(from, to) }.each(&:join)
        rescue SystemCallError
          nil
        ensure
          [client, server].each { |socket| socket&.close }
        end
      end

      # Reads at once, so that each byte waits only for its own delay.
      def pass(from, to)
        queue = Queue.new
        Thread.new do
          loop { queue << [now + @delay, from.readpartial(1 << 16)] }
        rescue SystemCallError, IOError
          queue << [now + @delay, nil]
        end
        Thread.new { deliver(queue, to) }
      end

      def deliver(queue, to)
        loop do
          due, bytes = queue.pop
          sleep [due - now, 0].max
          break to.close_write unless bytes

          to.write(bytes)
        end
      rescue SystemCallError, IOError
        nil
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
