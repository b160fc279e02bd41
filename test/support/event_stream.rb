# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # A client for server-sent events, as the HTML standard defines them ("Server-sent events", 9.2), over a chunked response
    # or one that lasts until the connection ends. Every wait has a deadline.
    #
    #   stream = EventStream.connect("127.0.0.1", port, "/feed")
    #   stream.receive        # => #<struct event="tick", id="7", data="one\ntwo", retry=nil>
    #   stream.end_of_stream  # => :last_chunk
    class EventStream
      # The server sent no valid response, chunk or event.
      class Malformed < StandardError; end

      # The stream has ended unexpectedly. The message is :last_chunk, :closed or :reset.
      class Ended < StandardError; end

      SECONDS = 20
      FIELDS = { "host" => "localhost", "accept" => "text/event-stream" }.freeze

      # An event as received; a missing field is nil.
      Event = Struct.new(:event, :id, :data, :retry)

      attr_reader :socket, :head, :status, :fields, :events, :comments, :last_event_id, :reconnection_time

      def self.connect(host, port, path = "/", headers: {}, version: "1.1")
        socket = TCPSocket.new(host, port)
        lines = FIELDS.merge(headers).map { |name, value| "#{name}: #{value}\r\n" }
        socket.write("GET #{path} HTTP/#{version}\r\n#{lines.join}\r\n")
        new(socket)
      rescue StandardError
        socket&.close
        raise
      end

      # +socket+: a socket on which the request has been sent.
      def initialize(socket)
        @socket = socket
        @received = "".b
        @text = "".b
        @lines = []
        @events = []
        @comments = []
        @end = nil
        read_head
      end

      # Returns the value of a field of the response, or nil.
      def [](name) = fields.assoc(name)&.last

      # Returns the next event with data.
      def receive(seconds = SECONDS)
        wait_for("an event", seconds) { @events.any? || @end }
        @events.shift || raise(Ended, @end.to_s)
      end

      # Returns the next unread comment.
      def receive_comment(seconds = SECONDS)
        wait_for("a comment", seconds) { @comments.any? || @end }
        @comments.shift || raise(Ended, @end.to_s)
      end

      # Returns how the stream ends: :last_chunk, :closed (in time for a response without chunks) or :reset.
      def end_of_stream(seconds = SECONDS)
        wait_for("the end of the stream", seconds) { @end }
        @end
      end

      # Returns true if the server closes the connection, too.
      def ended?(seconds = SECONDS)
        end_of_stream(seconds)
        @end != :last_chunk || !@socket.wait_readable(seconds).nil? && @socket.read_nonblock(1, exception: false).nil?
      end

      def silent?(seconds) = @events.empty? && @end.nil? && @socket.wait_readable(seconds).nil?

      # Returns true if the stream has ended.
      def over? = !@end.nil?

      # Reads the available bytes, without waiting.
      def take_in
        bytes = @socket.read_nonblock(1 << 16, exception: false)
        return if bytes == :wait_readable
        return @end ||= @chunked ? :cut_off : :closed if bytes.nil?

        @received << bytes
        decode if @head
      rescue Errno::ECONNRESET
        @end ||= :reset
      end

      def drop = @socket.close

      private

      def wait_for(what, seconds)
        deadline = Waiting.monotonic + seconds
        until yield
          left = deadline - Waiting.monotonic
          raise Waiting::Expired, "timed out after #{seconds} s: waited for #{what}" if left.negative? || @socket.wait_readable(left).nil?

          take_in
        end
      end

      def read_head
        wait_for("the head of the response", SECONDS) { @received.include?("\r\n\r\n") || @end }
        raise Ended, @end.to_s if @end

        @head, @received = @received.split(/(?<=\r\n\r\n)/n, 2)
        @received ||= "".b
        @status = Integer(@head[%r{\AHTTP/1\.1 (\d\d\d) }, 1] || raise(Malformed, @head), 10)
        # Fairlead writes names in lower case, proxies use any case.
        @fields = @head.split("\r\n").drop(1).map { |line| line.split(": ", 2) }.each { |field| field.first.downcase! }
        @chunked = self["transfer-encoding"] == "chunked"
        decode
      end

      def decode
        @chunked ? decode_chunks : @text << @received.slice!(0..)
        while (line = @text.slice!(/\A[^\r\n]*(?:\r\n|\n|\r(?!\z))/n))
          take_line(line.chomp.force_encoding("UTF-8"))
        end
      end

      def decode_chunks
        while (line = @received[/\A\h+\r\n/n])
          size = Integer(line.chomp, 16)
          whole = line.bytesize + size + 2
          break if @received.bytesize < whole

          chunk = @received.slice!(0, whole)
          raise Malformed, "no CRLF behind a chunk" unless chunk.end_with?("\r\n")
          next @text << chunk.byteslice(line.bytesize, size) if size.positive?

          @end = :last_chunk
          raise Malformed, "#{@received.inspect} behind the last chunk" unless @received.empty?
        end
        raise Malformed, "chunk size #{@received[0, 20].inspect}" unless @received.match?(/\A(?:\z|\h+(?:\r|\z))/n)
      end

      def take_line(line)
        raise Malformed, "not UTF-8: #{line.inspect}" unless line.valid_encoding?
        return dispatch if line.empty?
        return @comments << line[1..].delete_prefix(" ") if line.start_with?(":")

        @lines << line
      end

      def dispatch
        return if @lines.empty?

        values = @lines.map { |line| line.split(/: ?/, 2) }.group_by(&:first).transform_values { |pairs| pairs.map { |pair| pair[1].to_s } }
        unknown = values.keys - %w[event id data retry]
        raise Malformed, "field #{unknown.join(", ")}" if unknown.any?

        @lines = []
        @last_event_id = values["id"].last if values["id"]
        @reconnection_time = Integer(values["retry"].last, 10) if values["retry"]
        return if (values.keys - %w[id retry]).empty? # no event, but a new last event id, or a time

        @events << Event.new(values["event"]&.last, values["id"]&.last, values["data"]&.join("\n"), values["retry"]&.last)
      end
    end

    # For test cases with event streams: closes every connection after the test.
    module EventStreams
      def event_stream(server, path = "/", **options)
        (@event_streams ||= []) << (stream = EventStream.connect("127.0.0.1", server.port, path, **options))
        stream
      end

      def after_teardown
        (@event_streams || []).each(&:drop)
      ensure
        super
      end
    end
  end
end
