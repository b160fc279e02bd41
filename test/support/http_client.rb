# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # An HTTP/1 client that sends exactly the bytes it is given and takes an answer apart strictly: what is not framed as
    # RFC 9112 says raises. Every wait has a deadline.
    #
    #   client = HttpClient.new(TCPSocket.new("127.0.0.1", port))
    #   client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    #   client.answer.status   # => 200
    class HttpClient
      class MalformedAnswer < StandardError; end

      # The connection ended in the middle of an answer.
      class CutOff < StandardError; end

      SECONDS = 20

      # +head+: as it came. +fields+: pairs in their order. +body+: decoded.
      Answer = Struct.new(:head, :version, :status, :reason, :fields, :body) do
        # The value of a field that came once; nil if it did not come.
        def [](name)
          values = all(name)
          raise MalformedAnswer, "#{name} came #{values.size} times" if values.size > 1

          values.first
        end

        # Every value of a field.
        def all(name) = fields.select { |field, _| field == name }.map(&:last)

        def interim? = status < 200
      end

      attr_reader :socket

      # +seconds+: how long to wait for anything.
      def initialize(socket, seconds: SECONDS)
        @socket = socket
        @seconds = seconds
        @received = "".b
      end

      # Sends these bytes as they are.
      def write(bytes)
        @socket.write(bytes)
        self
      end

      # Sends a request of HTTP/1.1 with these fields.
      def request(method = "GET", target = "/", fields = {}, body: "")
        fields = { "host" => "localhost" }.merge(fields)
        fields["content-length"] = body.bytesize if !body.empty? && !fields.key?("transfer-encoding")
        lines = fields.map { |name, value| "#{name}: #{value}\r\n" }
        write("#{method} #{target} HTTP/1.1\r\n#{lines.join}\r\n#{body}")
      end

      # Reads the next answer, interim ones included. +to+: the method of the request.
      def answer(to: "GET")
        answer = parse(read_through("\r\n\r\n"))
        answer.body = body(answer, to)
        answer
      end

      # Reads the next final answer.
      def final_answer(to: "GET")
        answer = self.answer(to: to)
        answer = self.answer(to: to) while answer.interim?
        answer
      end

      # Sends a request and reads its answer.
      def get(target = "/", fields = {})
        request("GET", target, fields).answer
      end

      # Reads until +text+ has come, and returns everything up to its end.
      def read_through(text)
        receive until (start = @received.index(text))
        @received.slice!(0, start + text.bytesize)
      end

      # Reads that many bytes.
      def read(count)
        receive while @received.bytesize < count
        @received.slice!(0, count)
      end

      # Reads until the server closes, and returns what has come.
      def rest
        loop { receive }
      rescue CutOff
        @received.slice!(0..)
      end

      # Whether the server closes the connection without another byte.
      def closed? = rest.empty?

      # Whether the server has sent something, or closed, within +seconds+.
      def readable?(seconds = 0) = !@received.empty? || !@socket.wait_readable(seconds).nil?

      # Says that no more bytes will come, and goes on reading.
      def half_close = @socket.close_write

      # Closes with a reset, as a client that has crashed does.
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
          raise Waiting::Expired, "waited #{@seconds} s in vain for more than #{@received[-200..] || @received}"
        @received << @socket.readpartial(1 << 18)
      rescue EOFError, Errno::ECONNRESET
        raise CutOff, "the connection ended after #{@received.bytesize} bytes of an answer: #{@received[0, 200].inspect}"
      end
    end

    # For test cases that talk to servers: every connection is closed after the test.
    module HttpClients
      # A connection to +server+.
      def connect(server) = adopt(TCPSocket.new("127.0.0.1", server.port))

      # A connection whose system holds next to nothing for the client: the server has to wait until that reads.
      def narrow_client(server)
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:SOCKET, :RCVBUF, 4096)
        socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
        adopt(socket)
      end

      # Whether nobody listens on the server's port any more.
      def refused?(server)
        TCPSocket.new("127.0.0.1", server.port).close
        false
      rescue Errno::ECONNREFUSED
        true
      end

      # A client for a connected socket.
      def adopt(socket)
        (@clients ||= []) << (client = HttpClient.new(socket))
        client
      end

      # One request on a connection of its own, and its answer.
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
