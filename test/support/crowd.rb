# frozen_string_literal: true

require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # One client with many connections (the crowd, client 0) against clients with one connection each. Every client sends its
    # next request as soon as it has a response.
    class Crowd
      # Works for the number of seconds in the query.
      APP = "run ->(env) { sleep env['QUERY_STRING'].to_f; [200, {}, ['.']] }"

      SINGLES = 10
      WORK = 0.02

      # Seconds before the responses count: until then the server does not know the clients.
      WARM_UP = 0.5

      # Shortest and longest duration of the measurement, in seconds.
      SECONDS = (1.5..12)

      Connection = Struct.new(:socket, :number, :work, :request)

      # +crowd+: its number of connections, the duration of each request, and the number of requests that it sends at once.
      # +single+: the duration of the others' requests. +address+ and +fields+: the address of client number n, and the
      # header fields of its requests.
      def initialize(server, crowd: {}, single: {}, address: ->(n) { "127.0.0.#{n + 1}" }, fields: ->(_) { {} })
        @server = server
        @kinds = [{ connections: 200, work: WORK, pipelined: 1 }.merge(crowd), { connections: 1, work: WORK, pipelined: 1 }.merge(single)]
        @address = address
        @fields = fields
        @times = Hash.new(0)
      end

      # Returns the share of thread time of each single client, as a multiple of an equal share. Runs until every share is at
      # least +enough+, so that a busy machine makes it longer and not wrong.
      def shares(enough)
        connect
        ask_until(Waiting.monotonic + WARM_UP) { false }
        @times.clear
        begun = Waiting.monotonic
        ask_until(begun + SECONDS.end) { Waiting.monotonic > begun + SECONDS.begin && current.min >= enough }
        current
      ensure
        @connections.each { |connection| connection.socket.close }
      end

      private

      def connect
        numbers = (0..SINGLES).flat_map { |number| [number] * kind(number)[:connections] }
        @connections = numbers.shuffle.map { |number| connection(number, **kind(number).slice(:work, :pipelined)) }
        @by_socket = @connections.to_h { |connection| [connection.socket, connection] }
      end

      def kind(number) = @kinds[number.zero? ? 0 : 1]

      def connection(number, work:, pipelined:)
        socket = Socket.tcp("127.0.0.1", @server.port, @address.call(number), 0)
        lines = @fields.call(number).map { |name, value| "#{name}: #{value}\r\n" }
        request = "GET /?#{work} HTTP/1.1\r\nhost: a\r\n#{lines.join}\r\n"
        socket.write(request * pipelined)
        Connection.new(socket, number, work, request)
      end

      def ask_until(time)
        until Waiting.monotonic > time || yield
          ready, = IO.select(@by_socket.keys, nil, nil, 1)
          (ready || []).shuffle.each { |socket| again(@by_socket[socket]) }
        end
      end

      # Reads the available responses, and sends as many requests.
      def again(connection)
        count = connection.socket.readpartial(10_000).scan("HTTP/1.1 200 OK").size
        @times[connection.number] += connection.work * count
        connection.socket.write(connection.request * count)
      end

      def current
        equal = @times.values.sum / (SINGLES + 1)
        (1..SINGLES).map { |number| (@times[number] / equal).round(2) }
      end
    end
  end
end
