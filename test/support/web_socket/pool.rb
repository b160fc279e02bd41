# frozen_string_literal: true

require_relative "../web_socket"

module Fairlead
  module Test
    class WebSocket
      # Many clients in one thread. Messages wait in each client's #messages.
      class Pool
        include Enumerable

        attr_reader :clients

        # Connects that many clients, like WebSocket.connect.
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

        # Reads for all clients until the block is true. Ignores clients that are over.
        def wait_for(what, seconds = SECONDS)
          deadline = Waiting.monotonic + seconds
          until yield
            raise Waiting::Expired, "timed out after #{seconds} s: waited for #{what}" if Waiting.monotonic > deadline

            take_in(0.05)
          end
          true
        end

        # Reads until each client has that many messages, or is over; returns their data and removes it.
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
