# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # An HTTP/1 client that sends exactly the given bytes and parses responses strictly: it raises if the framing violates
    # RFC 9112. Every wait has a deadline.
    #
    #   client = HttpClient.new(TCPSocket.new("127.0.0.1", port))
    #   client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    #   client.answer.status   # => 200
    class HttpClient
      class MalformedAnswer < StandardError; end

      # The connection ended in the middle of a response.
      class CutOff < StandardError; end

      SECONDS = 20

      # +head+: as received. +fields+: pairs in order. +body+: decoded.
      Answer = Struct.new(:head, :version, :status, :reason, :fields, :body) do
        # Returns the value of a field that came once; nil if it did not come.
        def [](name)
          values = all(name)
          raise MalformedAnswer, "#{name} came #{values.size} times" if values.size > 1

          values.first
        end

        # Returns every value of a field.
        def all(name) = fields.select { |field, _| field == name }.map(&:last)

        def interim? = status < 200
      end

      attr_reader :socket

      # +seconds+: the deadline for every wait.
      def initialize(socket, seconds: SECONDS)
        @socket = socket
        @seconds = seconds
        @received = "".b
        @total = 0
      end

      # Sends these bytes as they are.
      def write(bytes)
        @socket.write(bytes)
        self
      end

      # Sends an HTTP/1.1 request with these fields.
      def request(method = "GET", target = "/", fields = {}, body: "")
        fields = { "host" => "localhost" }.merge(fields)
        fields["content-length"] = body.bytesize if !body.empty? && !fields.key?("transfer-encoding")
        lines = fields.map { |name, value| "#{name}: #{value}\r\n" }
        write("#{method} #{target} HTTP/1.1\r\n#{lines.join}\r\n#{body}")
      end

      # Reads the next response, including interim ones. +to+: the method of the request.
      def answer(to: "GET")
        answer = parse(read_through("\r\n\r\n"))
        answer.body = body(answer, to)
        answer
      end

      # Reads the next final response.
      def final_answer(to: "GET")
        answer = self.answer(to: to)
        answer = self.answer(to: to) while answer.interim?
        answer
      end

      # Sends a request and reads its response.
      def get(target = "/", fields = {})
        request("GET", target, fields).answer
      end

      # Reads until +text+ has arrived, and returns everything up to its end.
      def read_through(text)
        receive until (start = @received.index(text))
        @received.slice!(0, start + text.bytesize)
      end

      # Reads that many bytes.
      def read(count)
        receive while @received.bytesize < count
        @received.slice!(0, count)
      end

      # Reads until the server closes, and returns the bytes.
      def rest
        loop { receive }
      rescue CutOff
        @received.slice!(0..)
      end

      # Returns true if the server closes the connection without another byte.
      def closed? = rest.empty?

      # Returns true if the server has sent something, or closed, within +seconds+.
      def readable?(seconds = 0) = !@received.empty? || !@socket.wait_readable(seconds).nil?

      # Closes the sending side, and continues to read.
      def half_close = @socket.close_write

      # Closes with a reset, like a client that has crashed.
      def reset
        @socket.setsockopt(Socket::Option.linger(true, 0))
        close
      end

      def close = @socket.close

      private

      def parse(head)
        status_line, *lines = head.split("\r\n")
        match = %r{\A(HTTP/1\.[01]) ([1-9]\d\d) ([\t -~]*)\z}.match(status_line) or raise MalformedAnswer, head.inspect
        fields = lines.map do |line|
          field = /\A([!#$%&'*+.^_`|~0-9a-z-]+): ([^\r\n\0]*)\z/n.match(line.b) or raise MalformedAnswer, line.inspect
          field.captures
        end
        Answer.new(head, match[1], Integer(match[2], 10), match[3], fields, "".b)
      end

      def body(answer, method)
        length = answer["content-length"]
        coding = answer["transfer-encoding"]
        raise MalformedAnswer, "two framings: #{answer.head}" if length && coding
        return "".b if method == "HEAD" || answer.interim? || [204, 304].include?(answer.status)
        return chunks if coding == "chunked"
        raise MalformedAnswer, "transfer-encoding: #{coding}" if coding

        length ? read(Integer(length, 10)) : rest
      end

      def chunks
        body = "".b
        loop do
          line = read_through("\r\n")
          size = /\A(\h+)\r\n\z/.match(line) or raise MalformedAnswer, "chunk size #{line.inspect}"
          size = Integer(size[1], 16)
          body << read(size)
          raise MalformedAnswer, "no CRLF behind a chunk" unless read(2) == "\r\n"
          return body if size.zero?
        end
      end

      def receive
        @socket.wait_readable(@seconds) or
          raise Waiting::Expired, "timed out after #{@seconds} s: received nothing behind #{@received[-200..] || @received}"
        @received << (bytes = @socket.readpartial(1 << 18))
        @total += bytes.bytesize
      rescue EOFError, Errno::ECONNRESET
        raise CutOff, "the connection ended after #{@total} bytes, #{@received.bytesize} of them not parsed: #{@received[0, 200].inspect}"
      end
    end

    # For test cases that talk to servers: closes every connection after the test.
    module HttpClients
      # Returns a connection to +server+; options as for HttpClient.new.
      def connect(server, **options) = adopt(TCPSocket.new("127.0.0.1", server.port), **options)

      # Returns a connection with a tiny receive buffer: the server has to wait until the client reads.
      def narrow_client(server)
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:SOCKET, :RCVBUF, 4096)
        socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
        adopt(socket)
      end

      # Returns true if no process listens on the server's port any more.
      def refused?(server)
        TCPSocket.new("127.0.0.1", server.port).close
        false
      rescue Errno::ECONNREFUSED
        true
      end

      # Returns a client for a connected socket.
      def adopt(socket, **options)
        (@clients ||= []) << (client = HttpClient.new(socket, **options))
        client
      end

      # Sends one request on a new connection, and returns the response.
      def get(server, target = "/", fields = {})
        ask(server, "GET", target, fields)
      end

      # The same with any method and a body.
      def ask(server, method, target = "/", fields = {}, body = "")
        client = connect(server)
        client.request(method, target, fields, body: body).final_answer(to: method)
      ensure
        client&.close
      end

      def after_teardown
        (@clients || []).each(&:close)
      ensure
        super
      end
    end
  end
end
