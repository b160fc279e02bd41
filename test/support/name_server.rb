# frozen_string_literal: true

require "socket"

module Fairlead
  module Test
    # A name server (RFC 1035) that resolves every host to 127.0.0.1.
    class NameServer
      ADDRESS = [127, 0, 0, 1].pack("C4")
      TYPE_A = 1

      def initialize
        @socket = UDPSocket.new
        @socket.bind("127.0.0.1", 0)
        @thread = Thread.new { loop { answer } }
      end

      def port = @socket.addr[1]

      def close
        @thread.kill.join
        @socket.close
      end

      private

      # The header, the question, and for a question of type A one answer with the question's name.
      def answer
        query, sender = @socket.recvfrom(512)
        question = query[/\A.{12}(?:[^\0].*?)?\0.{4}/mn][12..]
        found = question[-4, 2].unpack1("n") == TYPE_A
        header = [query.unpack1("n"), 0x8180, 1, found ? 1 : 0, 0, 0].pack("n6")
        record = found ? [0xc00c, TYPE_A, 1, 60, 4].pack("nnnNn") + ADDRESS : ""
        @socket.send(header + question + record, 0, sender[3], sender[1])
      end
    end
  end
end
