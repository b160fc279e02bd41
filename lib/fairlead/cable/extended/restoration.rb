# frozen_string_literal: true

require "rack"

module Fairlead
  module Cable
    module Extended
      # Takes over the session of a former connection: makes its subscriptions again, in several turns. Rails has identified this
      # connection, and the channels decide again, so nobody gets more with a session than without it.
      class Restoration
        CONFIRMATION = "confirm_subscription"

        # Seconds after which a turn makes no further subscription.
        TURN = 0.005

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

        # Makes subscriptions for a turn. If a channel raises or ends the thread, its subscription is left out: the client subscribes again.
        def continue(socket)
          over = now + TURN
          subscribe(socket, @wanted.shift) until finished? || now > over
        end

        def finished? = @wanted.empty?

        # Takes a message of Rails. The welcome replaces confirmations.
        def add(message)
          content = JSON.parse(message)
          return @transmissions << message unless content["type"] == CONFIRMATION

          @identifiers << content["identifier"]
          true
        end

        private

        def subscribe(socket, identifier)
          socket.subscribing do
            socket.hold(identifier, @position) { @connection.subscriptions.add("command" => "subscribe", "identifier" => identifier) }
          end
          is_made = true
        rescue StandardError, ScriptError => e
          @connection.logger.error("Could not restore the subscription #{identifier} [#{e.class} - #{e.message}]")
        ensure
          @connection.subscriptions.drop(identifier) unless is_made
        end

        def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
      end
    end
  end
end
