# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # One HTTP/1.1 client on one connection, down to the byte: what is sent and when, is the test's to say. Every read has
    # a deadline.
    #
    #   client = Client.new(server.port)
    #   client.get("/")                   # => #<struct Answer status=200, fields={…}, body="hello">
    #   client.write("GET / HTT")         # … and no more
    #   client.read_answer.status         # => 408
    #   client.read_to_end                # => what came until the server closed the connection
    class Client
      class TimeOut < StandardError; end

      Answer = Struct.new(:status, :fields, :body) do
        def [](name) = fields[name]
      end

      PATIENCE = 15

      # One request on a connection of its own.
      def self.get(port, target = "/", fields = {})
        connect(port) { |client| client.get(target, { "connection" => "close" }.merge(fields)) }
      end

      # With a block, closes the client afterwards and returns what the block returns.
      def self.connect(port, **options)
        client = new(port, **options)
        yield client
      ensure
        client&.close
      end

      attr_reader :socket

      # +receive_buffer+: bytes that the system takes for a client that does not read.
      def initialize(port, receive_buffer: nil, patience: PATIENCE)
        @socket = Socket.new(:INET, :STREAM)
        @socket.setsockopt(:SOCKET, :RCVBUF, receive_buffer) if receive_buffer
        @socket.connect(Addrinfo.tcp("127.0.0.1", port))
        @socket.setsockopt(:TCP, :NODELAY, true)
        @patience = patience
        @input = String.new(encoding: Encoding::BINARY)
      end

      def write(bytes)
        @socket.write(bytes)
        self
      end

      # Sends a request and does not wait for its answer.
      def ask(target = "/", fields = {}, method: "GET", body: nil)
        fields = { "content-length" => body.bytesize }.merge(fields) if body
        head = ["#{method} #{target} HTTP/1.1", "host: test", *fields.map { |name, value| "#{name}: #{value}" }]
        write("#{head.join("\r\n")}\r\n\r\n#{body}")
      end

      def get(target = "/", fields = {})
        ask(target, fields).read_answer
      end

      def post(target, body, fields = {})
        ask(target, fields, method: "POST", body: body).read_answer
      end

      def read_answer
        head = read_up_to("\r\n\r\n")
        first, *lines = head.split("\r\n")
        status = Integer(first[%r{\AHTTP/1\.1 (\d{3}) }, 1] || raise("no status line: #{first.inspect}"), 10)
        fields = lines.to_h { |line| line.split(": ", 2) }
        Answer.new(status, fields, body(status, fields))
      end

      # All that comes until the server closes the connection; a reset counts as its end.
      def read_to_end
        loop { fill }
      rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
        @input.slice!(0..)
      end

      # Bytes that are there now, or come within +seconds+; nil for none, "" at the end of the connection.
      def read_some(seconds = @patience)
        fill(seconds)
        @input.slice!(0..)
      rescue TimeOut
        nil
      rescue EOFError, Errno::ECONNRESET
        ""
      end

      # Says that nothing more will be sent.
      def finish
        @socket.close_write
        self
      end

      def close
        @socket.close
      end

      # Ends the connection with a reset, as a machine does that was switched off and on.
      def reset
        @socket.setsockopt(Socket::Option.linger(true, 0))
        @socket.close
      end

      private

      def body(status, fields)
        return "" if status < 200 || [204, 304].include?(status)
        return read_chunks if fields["transfer-encoding"] == "chunked"
        return read(Integer(fields["content-length"], 10)) if fields["content-length"]

        read_to_end
      end

      def read_chunks
        text = String.new(encoding: Encoding::BINARY)
        loop do
          size = Integer(read_up_to("\r\n").chomp, 16)
          text << read(size)
          read(2)
          return text if size.zero?
        end
      end

      def read(count)
        fill until @input.bytesize >= count
        @input.slice!(0, count)
      end

      def read_up_to(mark)
        fill until (place = @input.index(mark))
        @input.slice!(0, place + mark.bytesize)
      end

      def fill(seconds = @patience)
        raise TimeOut, "nothing came for #{seconds} s" unless @socket.wait_readable(seconds)

        @input << @socket.readpartial(65_536)
      end
    end
  end
end
