# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # A port that leads to a RedisServer over a bad network: it delays or drops bytes, or cuts connections.
    class RedisRelay
      # Delay in each direction, in seconds.
      attr_accessor :delay

      # Name of a command. When Redis responds to it, the connection ends and the response is lost. Works once.
      attr_accessor :cut

      # Number of PINGs so far.
      attr_reader :pings

      # +socket+: path of the server's socket.
      def initialize(socket)
        @socket = socket
        @server = TCPServer.new("127.0.0.1", 0)
        @silent = []
        @subscribers = []
        @pairs = []
        @delay = @pings = 0
        @thread = Thread.new { loop { accept } }
      end

      def url = "redis://127.0.0.1:#{@server.addr[1]}"

      # Drops all further bytes on the open connections of subscribers, and keeps these connections open. Later connections
      # work.
      def silence_subscribers = @silent.concat(@subscribers)

      def close
        @thread.kill.join
        [@server, *@pairs.flatten].each(&:close)
      end

      private

      def accept
        client = @server.accept
        pair = [client, UNIXSocket.new(@socket)]
        @pairs << pair
        [pair, pair.reverse].each { |from, to| Thread.new { pass(pair, from, to) } }
      rescue SystemCallError
        client&.close
      end

      # Delays each chunk by the same time: a chunk that arrives during a delay is not delayed longer.
      def pass(pair, from, to)
        late = Thread::Queue.new
        Thread.new { hand_on(pair, late, to) }
        while (bytes = receive(from))
          next if @silent.include?(pair)

          cut_now = from != pair.first && @asked == pair && @cut
          note(pair, from, bytes)
          break pair.each(&:close) if cut_now

          late << [now + @delay, bytes]
        end
        late.close
      end

      def note(pair, from, bytes)
        if from == pair.first
          @pings += bytes.scan("PING").size
          @subscribers |= [pair] if bytes.downcase.include?("subscribe")
        end
        @asked = pair if @cut && from == pair.first && bytes.include?(@cut)
        @cut = @asked = nil if from != pair.first && @asked == pair
      end

      def hand_on(pair, late, to)
        while (due, bytes = late.pop)
          rest = due - now
          sleep rest if rest.positive?
          to.write(bytes)
        end
        pair.each(&:close) unless @silent.include?(pair)
      rescue SystemCallError, IOError
        pair.each(&:close)
      end

      def receive(socket)
        socket.readpartial(65_536)
      rescue SystemCallError, IOError
        nil
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
