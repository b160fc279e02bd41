# frozen_string_literal: true

require_relative "../web_socket"

module Fairlead
  module Test
    class WebSocket
      # Many clients that one thread serves. Messages wait in each client's #messages.
      class Pool
        include Enumerable

        attr_reader :clients

        # Connects that many clients, as WebSocket.connect does.
        def self.connect(count, *address, **options)
          clients = []
          count.times { clients << WebSocket.connect(*address, **options) }
          new(clients)
        rescue StandardError
          clients.each(&:drop)
          raise
        end

        def initialize(clients)
          @clients = clients
        end

        def each(&block) = @clients.each(&block)

        # Takes in what comes for all of them until the block is true. A client that is over is left alone.
        def wait_for(what, seconds = SECONDS)
          deadline = Waiting.monotonic + seconds
          until yield
            raise Waiting::Expired, "waited #{seconds} s in vain for #{what}" if Waiting.monotonic > deadline

            take_in(0.05)
          end
          true
        end

        # Takes in what comes until each client has that many messages, or is over; returns their data, taken.
        def receive_all(count, seconds = SECONDS)
          wait_for("#{count} messages for each", seconds) { all? { |client| client.messages.size >= count || client.over? } }
          map { |client| client.messages.shift(count).map(&:last) }
        end

        def drop = each { |client| client.socket.close }

        private

        def take_in(seconds)
          by_socket = reject(&:over?).to_h { |client| [client.socket, client] }
          ready, = IO.select(by_socket.keys, nil, nil, seconds)
          ready&.each { |socket| by_socket[socket].take_in }
        end
      end
    end
  end
end
