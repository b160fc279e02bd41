# frozen_string_literal: true

require "socket"

module Bench
  module Growth
    # A connection of HTTP/2 in cleartext with prior knowledge: sends GETs and counts the responses that have ended.
    class Http2Client
      PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".b.freeze
      DATA = 0
      HEADERS = 1
      SETTINGS = 4
      PING = 6
      GOAWAY = 7
      WINDOW_UPDATE = 8
      RESET = 3
      END_STREAM = 1
      END_HEADERS = 4
      ACK = 1
      # Of the connection, beyond the 65,535 bytes that every connection has.
      WINDOW = 1 << 24

      attr_reader :answered

      # +streams+ requests for +path+ are sent at once.
      def initialize(target, path: target.path, fields: {}, streams: 1)
        @socket = TCPSocket.new("127.0.0.1", target.running.port)
        @next = 1
        @answered = 0
        @socket.write(PREFACE + frame(SETTINGS, 0, 0, "") + frame(WINDOW_UPDATE, 0, 0, [WINDOW].pack("N")) +
                      Array.new(streams) { request(path, fields) }.join)
        @asked = streams
      end

      # Waits for the responses.
      def opened
        read_frame while @answered < @asked
      end

      # True if the server has neither closed nor announced that it will.
      def open?
        read_frame while !@leaves && @socket.wait_readable(0)
        !@leaves
      rescue Error
        false
      end

      def close
        @socket.close
      end

      def closed? = @socket.closed?

      private

      def request(path, fields)
        block = "\x82\x86".b + literal(4, path) + literal(1, "127.0.0.1") + fields.map { |name, value| "\x00".b + text(name) + text(value) }.join
        frame(HEADERS, END_STREAM | END_HEADERS, (@next += 2) - 2, block)
      end

      # A field with a name of the static table, not indexed.
      def literal(index, value) = [index].pack("C") + text(value)

      def text(value) = [value.bytesize].pack("C") + value.b

      def frame(type, flags, stream, payload)
        [payload.bytesize >> 8, payload.bytesize & 0xff, type, flags, stream].pack("nCCCN") + payload
      end

      def read_frame
        raise Error, "no frame within #{Clients::SECONDS} s" unless @socket.wait_readable(Clients::SECONDS)

        head = @socket.read(9) or raise(Error, "the server closed a connection")
        high, low, type, flags, = head.unpack("nCCCN")
        payload = @socket.read((high << 8) | low)
        take(type, flags, payload)
      rescue SystemCallError, EOFError => e
        raise Error, "a connection broke: #{e.message}"
      end

      def take(type, flags, payload)
        @answered += 1 if [DATA, HEADERS].include?(type) && (flags & END_STREAM).positive?
        case type
        when SETTINGS then @socket.write(frame(SETTINGS, ACK, 0, "")) if (flags & ACK).zero?
        when PING then @socket.write(frame(PING, ACK, 0, payload)) if (flags & ACK).zero?
        when GOAWAY then @leaves = true
        when RESET then raise Error, "the server reset a stream: #{payload.unpack1("N")}"
        end
      end
    end
  end
end
