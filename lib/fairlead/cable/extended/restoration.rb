# frozen_string_literal: true

require "rack"

module Fairlead
  module Cable
    module Extended
      # Takes over the session of a former connection: makes its subscriptions again. Rails has identified this connection, and the
      # channels decide again, so nobody gets more with a session than without it.
      class Restoration
        CONFIRMATION = "confirm_subscription"

        class << self
          # Nil if the client names no session, or one of somebody else.
          def of(env, connection)
            id = env["HTTP_X_ANYCABLE_RESTORE_SID"] || Extended.query(env)["sid"]
            who, identifiers, position = Session.find(id)
            new(connection, identifiers, position) if who && who == connection.connection_identifier
          end
        end

        # The restored subscriptions, and what their channels have transmitted.
        attr_reader :identifiers, :transmissions

        def initialize(connection, identifiers, position)
          @connection = connection
          @wanted = identifiers
          @position = position
          @identifiers = []
          @transmissions = []
        end

        def restore(socket)
          @wanted.each { |identifier| socket.hold(identifier, @position) { subscribe(identifier) } }
        end

        # Takes a message of Rails. The welcome replaces confirmations.
        def add(message)
          content = JSON.parse(message)
          return @transmissions << message unless content["type"] == CONFIRMATION

          @identifiers << content["identifier"]
          true
        end

        private

        def subscribe(identifier)
          @connection.subscriptions.add("command" => "subscribe", "identifier" => identifier)
        rescue StandardError => e
          @connection.subscriptions.drop(identifier) # the client subscribes again
          @connection.logger.error("Could not restore the subscription #{identifier} [#{e.class} - #{e.message}]")
        end
      end
    end
  end
end
