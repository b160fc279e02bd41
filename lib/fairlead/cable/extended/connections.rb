# frozen_string_literal: true

require_relative "tokens"

module Fairlead
  module Cable
    module Extended
      # For ActionCable::Connection::Base: a connection with a token gets its identifiers from it, and `connect` is not called.
      module Connections
        # Override it to let clients subscribe to any stream by its name, without a signature.
        def allow_public_streams? = false

        # For Rails, which calls it from another object since 8.2.
        def handle_open
          secret = Cable.secret(server, "jwt_secret")
          token = secret && Tokens.of(env)
          return super unless token

          identifiers = Tokens.identifiers(token, secret)
          return close(reason: Tokens::EXPIRED, reconnect: false) if identifiers == false

          define_singleton_method(:connect) { identify(identifiers) }
          super
        end

        private

        def identify(identifiers)
          reject_unauthorized_connection unless identifiers

          self.class.identifiers.each do |name|
            public_send("#{name}=", value(identifiers[name.to_s])) if identifiers.key?(name.to_s)
          end
        end

        # The record of a token may be gone.
        def value(text)
          Tokens.value(text)
        rescue StandardError => e
          logger.error("The identifier in a token cannot be found [#{e.class} - #{e.message}]")
          reject_unauthorized_connection
        end
      end
    end
  end
end
