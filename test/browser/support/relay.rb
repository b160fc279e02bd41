# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # Forwards bytes between a browser and a server, and counts them.
    class Relay
      # Bytes that have passed so far, in both directions.
      attr_reader :bytes

      def initialize(port)
        @port = port
        @bytes = 0
        @lock = Mutex.new
        @listener = TCPServer.new("127.0.0.1", 0)
        @threads = ThreadGroup.new
        start { accept }
      end

      def url = "http://127.0.0.1:#{@listener.addr[1]}/"

      def close
        @threads.list.each(&:kill).each(&:join)
        @listener.close
      end

      private

      def accept
        loop do
          ends = [@listener.accept, TCPSocket.new("127.0.0.1", @port)]
          start { copy(*ends) }
          start { copy(*ends.reverse) }
        end
      end

      def start(&block) = @threads.add(Thread.new(&block))

      def copy(from, to)
        loop do
          piece = from.readpartial(1 << 16)
          @lock.synchronize { @bytes += piece.bytesize }
          to.write(piece)
        end
      rescue IOError, SystemCallError
        [from, to].each(&:close)
      end
    end
  end
end
