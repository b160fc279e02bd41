# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # A port that forwards to a target port, which can be set later. Without a target, connections end at once.
    class PortRelay
      attr_accessor :target

      attr_reader :port

      def initialize
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
        server = TCPSocket.new("127.0.0.1", target) if target
        return client.close unless server

        Thread.new { pass(client, server) }
        Thread.new { pass(server, client) }
      rescue SystemCallError
        client.close
      end

      def pass(from, to)
        IO.copy_stream(from, to)
        to.close_write
      rescue SystemCallError, IOError
        [from, to].each(&:close)
      end
    end
  end
end
