# frozen_string_literal: true

require "socket"
require_relative "waiting"

module Fairlead
  module Test
    # A crowd of connections of one client against clients with one connection each; all of them ask again as soon as they
    # have an answer. Client 0 is the crowd.
    class Crowd
      # Works for as many seconds as the query says.
      APP = "run ->(env) { sleep env['QUERY_STRING'].to_f; [200, {}, ['.']] }"

      SINGLES = 10
      WORK = 0.02

      # How long the clients ask before their answers count: until then the server does not know them.
      WARM_UP = 0.5

      # How long they ask at least, and at most.
      SECONDS = (1.5..12)

      Connection = Struct.new(:socket, :number, :work, :request)

      # +crowd+: how many connections it has, how long each of its requests works, and how many it sends at once. +single+: how
      # long the requests of the others work. +address+ and +fields+: from which address client number n comes, and which fields
      # its requests have.
      def initialize(server, crowd: {}, single: {}, address: ->(n) { "127.0.0.#{n + 1}" }, fields: ->(_) { {} })
        @server = server
        @kinds = [{ connections: 200, work: WORK, pipelined: 1 }.merge(crowd), { connections: 1, work: WORK, pipelined: 1 }.merge(single)]
        @address = address
        @fields = fields
        @times = Hash.new(0)
      end

      # What each single client gets of the time of the threads, as multiples of an equal share. Ends when all of them have
      # +enough+, so that a machine that was busy with something else makes it longer and not wrong.
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

      # Takes the answers that are there, and asks again as often.
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
