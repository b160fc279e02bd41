# frozen_string_literal: true

module Fairlead
  module Compat
    class Upgrade
      # The handler that calls the callbacks of a socket object, in turn with the blocks of its #defer.
      class Callbacks
        # +object+: the object, or its class.
        def initialize(object)
          @socket = object.is_a?(Class) ? instance_of(object) : object.extend(Iodine::Websocket)
        end

        def on_open(client)
          @socket.fairlead_connection = @connection = Connections.add(@socket, client)
          call_back(:on_open)
        end

        def on_message(_client, data) = call_back(:on_message, data)
        def on_drained(_client) = call_back(:on_ready)
        def on_shutdown(_client) = call_back(:on_shutdown)

        def on_close(_client)
          Connections.remove(@connection)
          call_back(:on_close)
        end

        private

        # The methods of the class itself take precedence.
        def instance_of(type)
          type.include(Iodine::Websocket)
          type.extend(Iodine::Websocket::All)
          type.new
        end

        def call_back(event, *arguments)
          @connection.turn.synchronize { @socket.public_send(event, *arguments) } if @socket.respond_to?(event)
        end
      end
    end
  end
end
