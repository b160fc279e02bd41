# frozen_string_literal: true

require_relative "certificates"
require_relative "event_stream"
require_relative "web_socket"
require_relative "staying/application"
require_relative "staying/clients"
require_relative "staying/ledger"
require_relative "staying/publishers"

module Fairlead
  module Test
    # Clients that stay connected while processes of their server are replaced, and publishers that number what they publish. One
    # thread reads for all clients.
    #
    #   crowd = Staying.new(server, plain: 20, streams: 5)
    #   crowd.begin
    #   crowd.during { server.signal(:USR1) … }
    #   crowd.finish
    #   crowd.faults        # => [] if each client got everything once
    class Staying
      include Secured
      include Waiting

      # Seconds between two looks at the clients, at the most.
      TURN = 0.02

      # Messages per second and publisher.
      RATE = 20

      attr_reader :clients, :publishers

      # The port with TLS; nil if there is none.
      def self.tls_port(server) = server.stdout[%r{listening on https://.*:(\d+)$}, 1]&.to_i

      # +counts+: number of clients of each kind of KINDS.
      def initialize(server, rate: RATE, **counts)
        @server = server
        @tls_port = Staying.tls_port(server)
        @publishers = Publishers.new(server, rate)
        @made = 0
        @clients = counts.flat_map { |kind, count| Array.new(count) { make(kind) } }
      end

      # Waits until all clients have subscribed, and begins to publish.
      def begin
        turns_until("all clients to be ready") { @clients.all?(&:ready?) }
        @publishers.start
      end

      # Serves all clients while the block runs in a thread of its own; returns its result.
      def during(seconds: 120, &block)
        thread = Thread.new(&block)
        thread.report_on_exception = false
        turns_until("the block to end", seconds) { !thread.alive? }
        thread.value
      end

      # Replaces clients that have ended. Returns their mistakes: an end excuses losses.
      def renew
        ended, @clients = @clients.partition(&:over?)
        ended.each(&:drop)
        @clients += ended.map { |client| make(client.name[/\w+/].to_sym) }
        turns_until("the new clients to be ready") { @clients.all? { |client| client.ready? || client.over? } }
        ended.flat_map(&:mistakes)
      end

      # Stops to publish, and waits until each client has everything, or for +seconds+.
      def finish(seconds: 30)
        @publishers.stop
        @clients.each(&:rest)
        turns_until("the last messages", seconds) { @clients.all? { |client| client.over? || complete?(client) } }
      rescue Expired
        nil # the faults say it
      ensure
        turns_for(0.3) # for messages that come twice
      end

      # Lines about lost, repeated, disordered and wrong messages, ended connections and failed requests.
      def faults = @clients.flat_map { |client| client.faults(@publishers.published) } + @publishers.faults

      # Delays of publications since the last call, in seconds, sorted. Slow clients do not count.
      def delays = @clients.reject(&:slow?).flat_map { |client| client.ledger.take_delays }.sort

      def drop = @clients.each(&:drop)

      private

      def complete?(client) = client.faults(@publishers.published).empty? && client.rested?

      def make(kind)
        type, options = KINDS.fetch(kind)
        connected = connection(type, **options.slice(:tls, :deflate, :slow))
        type.new("#{kind} #{@made += 1}", connected, @publishers, **options.slice(:slow, :large))
      end

      def connection(type, tls: nil, deflate: false, slow: false)
        socket = tls ? relayed_tls_socket(@tls_port, version: tls) : plain_socket(slow)
        return WebSocket.over(socket, deflate: deflate) if type == Talker

        lines = { "host" => "localhost", "accept" => "text/event-stream" }.map { |name, value| "#{name}: #{value}\r\n" }
        socket.write("GET / HTTP/1.1\r\n#{lines.join}\r\n")
        EventStream.new(socket)
      end

      def plain_socket(slow)
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:SOCKET, :RCVBUF, 4096) if slow
        socket.setsockopt(:TCP, :NODELAY, 1)
        socket.connect(Addrinfo.tcp("127.0.0.1", @server.port))
        socket
      end

      def turns_until(what, seconds = 30)
        deadline = monotonic + seconds
        until yield
          raise Expired, "timed out after #{seconds} s: waited for #{what}" if monotonic > deadline

          turn
        end
      end

      def turns_for(seconds)
        finish = monotonic + seconds
        turn while monotonic < finish
      end

      def turn
        now = monotonic
        open = @clients.reject(&:over?)
        open.each { |client| client.act(now) }
        readers = open.select { |client| client.reads?(now) }.to_h { |client| [client.socket, client] }
        ready, = IO.select(readers.keys, nil, nil, TURN)
        ready&.each { |socket| readers[socket].read }
      end
    end
  end
end
