# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "waiting"
require_relative "web_socket/deflate"
require_relative "web_socket/frames"
require_relative "web_socket/handshake"

module Fairlead
  module Test
    # A WebSocket client that sends exactly the given frames, broken ones too, and is strict about the server's frames: a
    # violation of RFC 6455 or RFC 7692 raises Malformed. Every wait has a deadline.
    #
    #   client = WebSocket.connect("127.0.0.1", port, "/chat", protocols: ["json"], deflate: true)
    #   client.send_text("hello")
    #   client.receive         # => [:text, "hello"]
    #   client.close(1000)
    #   client.receive_close   # => [1000, ""]
    class WebSocket
      # The server has violated the protocol.
      class Malformed < StandardError; end

      # The server has responded with another status than 101. +head+: the head of its response.
      class Refused < StandardError
        attr_reader :head

        def initialize(head)
          @head = head
          super(head.lines.first.to_s.strip)
        end

        def status = Integer(head[9, 3], 10)
      end

      # A close frame has arrived instead of a message. +code+: nil if the frame was empty.
      class Closed < StandardError
        attr_reader :code, :reason

        def initialize(code, reason)
          @code = code
          @reason = reason
          super("closed with #{code.inspect} #{reason}")
        end
      end

      # The connection has ended without a close frame.
      class CutOff < StandardError; end

      SECONDS = 20
      OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 }.freeze

      attr_reader :socket, :fields, :protocol, :deflate, :messages, :pings, :pongs, :closing

      # Controls the pongs to the server's pings; true is correct.
      attr_accessor :answers_pings

      # +headers+: further fields of the request. +protocols+: offered subprotocols. +deflate+: true offers
      # permessage-deflate, a String offers exactly that extension.
      def self.connect(host, port, path = "/", headers: {}, protocols: [], deflate: false)
        over(TCPSocket.new(host, port), path, headers: headers, protocols: protocols, deflate: deflate)
      end

      # The same over a connected socket.
      def self.over(socket, path = "/", headers: {}, protocols: [], deflate: false)
        socket.setsockopt(:TCP, :NODELAY, 1) if socket.is_a?(TCPSocket)
        handshake = Handshake.new(path, headers: headers, protocols: protocols, deflate: deflate)
        socket.write(handshake.request)
        new(socket, handshake)
      rescue StandardError
        socket.close
        raise
      end

      def initialize(socket, handshake)
        @socket = socket
        @messages = []
        @pings = []
        @pongs = []
        @answers_pings = true
        @closing = nil
        @close_sent = @ended = false
        establish(handshake)
      end

      # Returns the value of a field of the server's response, or nil.
      def [](name) = fields.assoc(name)&.last

      def send_text(text, **how) = send_message(:text, text, **how)
      def send_binary(bytes, **how) = send_message(:binary, bytes, **how)

      # Sends a message in one frame, compressed if that was negotiated.
      def send_message(type, data, compress: !@deflate.nil?)
        return send_frame(type, data) unless compress

        send_frame(type, @deflate.compress(data), rsv: 4)
      end

      # Sends any frame. +rsv+: the reserved bits, 4 for the first. +length+: a false length.
      def send_frame(opcode, data = "", fin: true, rsv: 0, masked: true, length: nil)
        opcode = OPCODES.fetch(opcode) if opcode.is_a?(Symbol)
        @close_sent ||= opcode == OPCODES[:close]
        send_raw(Frames.build(opcode, data, fin: fin, rsv: rsv, masked: masked, length: length))
      end

      # Sends these bytes as they are.
      def send_raw(bytes)
        @socket.write(bytes)
        self
      end

      def ping(data = "") = send_frame(:ping, data)
      def pong(data = "") = send_frame(:pong, data)

      # Sends a close frame and continues to read.
      def close(code = nil, reason = "")
        send_frame(:close, code ? [code].pack("n") + reason.b : "")
      end

      # Closes the sending side.
      def half_close
        @close_sent = true
        @socket.close_write
      end

      # Closes the socket without a close frame, with a reset if asked for, like a client that has crashed.
      def drop(reset: false)
        @socket.setsockopt(Socket::Option.linger(true, 0)) if reset
        @socket.close
      end

      # Returns the next message: [:text or :binary, String].
      def receive(seconds = SECONDS)
        wait_for("a message", seconds) { !@messages.empty? || over? }
        @messages.shift || raise(@closing ? Closed.new(*@closing) : CutOff.new("the connection ended without a close frame"))
      end

      # Returns that many messages, as Strings.
      def receive_all(count, seconds = SECONDS)
        wait_for("#{count} messages", seconds) { @messages.size >= count || over? }
        Array.new(count) { receive(0).last }
      end

      # Returns [code, reason] of the server's close frame, and replies to it. +skip+: messages may come before it.
      def receive_close(seconds = SECONDS, skip: false)
        wait_for("a close frame", seconds) do
          @messages.clear if skip
          over? || @messages.any?
        end
        raise Malformed, "a message instead of a close frame: #{@messages.first.inspect[0, 200]}" if @messages.any?

        @closing || raise(CutOff, "the connection ended without a close frame")
      end

      # Returns the data of the next unread pong, or ping.
      def receive_pong(seconds = SECONDS)
        wait_for("a pong", seconds) { @pongs.any? || over? }
        @pongs.shift || receive(0)
      end

      def receive_ping(seconds = SECONDS)
        wait_for("a ping", seconds) { @pings.any? || over? }
        @pings.shift || receive(0)
      end

      # Returns true if the server ends the connection in time; reads everything before the end.
      def ended?(seconds = SECONDS)
        wait_for("the end of the connection", seconds) { @ended }
      end

      # Returns true if nothing at all arrives within +seconds+.
      def silent?(seconds)
        @messages.empty? && !over? && @socket.wait_readable(seconds).nil?
      end

      # Returns true if no further message can arrive.
      def over? = @ended || !@closing.nil?

      # Reads the available bytes, without waiting.
      def take_in
        bytes = @socket.read_nonblock(1 << 18, exception: false)
        return if bytes == :wait_readable
        return @ended = true if bytes.nil?

        digest(bytes)
      rescue Errno::ECONNRESET
        @ended = true
      end

      # Reads until the block is true.
      def wait_for(what, seconds = SECONDS)
        deadline = Waiting.monotonic + seconds
        until yield
          left = deadline - Waiting.monotonic
          raise Waiting::Expired, "timed out after #{seconds} s: waited for #{what}" if left.negative? || @socket.wait_readable(left).nil?

          take_in
        end
        true
      end

      private

      def establish(handshake)
        head = read_head
        raise Refused, head unless head.start_with?("HTTP/1.1 101 ")

        @fields = handshake.check(head)
        @protocol = self["sec-websocket-protocol"]
        @deflate = handshake.agreed(self["sec-websocket-extensions"])
        @frames = Frames.new(@deflate)
        digest(@left_over)
      end

      # Reads the head of the response. Bytes behind it are kept for the frames.
      def read_head
        received = "".b
        until (head, @left_over = received.split(/(?<=\r\n\r\n)/n, 2)) && head&.end_with?("\r\n\r\n")
          @socket.wait_readable(SECONDS) or raise Waiting::Expired, "no response to the handshake within #{SECONDS} s"
          received << @socket.readpartial(1 << 16)
        end
        @left_over ||= ""
        head
      rescue EOFError, Errno::ECONNRESET
        raise CutOff, "the connection ended during the handshake: #{received.inspect}"
      end

      def digest(bytes)
        @frames << bytes
        while (frame = @frames.shift)
          take_frame(*frame)
        end
      end

      def take_frame(type, data)
        raise Malformed, "a #{type} behind the close frame" if @closing

        case type
        when :ping
          @pings << data
          pong(data) if @answers_pings
        when :pong then @pongs << data
        when :close
          @closing = Frames.parse_close(data)
          @close_sent || send_frame(:close, data)
        else @messages << [type, data]
        end
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil # bytes that the server sent before it left still count
      end
    end

    # For test cases with WebSockets: drops every connection after the test.
    module WebSockets
      def web_socket(server, path = "/", **options)
        adopt_web_socket(WebSocket.connect("127.0.0.1", server.port, path, **options))
      end

      def adopt_web_socket(client)
        (@web_sockets ||= []) << client
        client
      end

      def after_teardown
        (@web_sockets || []).each { |client| client.socket.close }
      ensure
        super
      end
    end
  end
end
