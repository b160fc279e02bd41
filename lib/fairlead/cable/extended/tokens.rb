# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    module Extended
      # JSON Web Tokens (HS256) with the identifiers of a connection in the claim `ext`. The key is `jwt_secret` in
      # config/cable.yml.
      module Tokens
        # As a parameter, as a field, and as a sub-protocol.
        PARAMETER = "jid"
        FIELD = "HTTP_X_JID"
        SUB_PROTOCOL = /(?:\A|,)\s*anycable-token\.([^\s,]+)/

        EXPIRED = "token_expired"

        class << self
          # The token of a request, or nil. It may be anything that a query can express.
          def of(env)
            Extended.query(env)[PARAMETER] || env[FIELD] || env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s[SUB_PROTOCOL, 1]
          end

          # The identifiers in a token; nil if it is not valid, false if it is not valid any more. Odd tokens make the gem raise
          # errors of other classes.
          def identifiers(token, secret)
            require "jwt"
            return unless token.is_a?(String)

            claims, = ::JWT.decode(token, secret, true, algorithm: "HS256")
            found = JSON.parse(claims.fetch("ext"))
            found if found.is_a?(Hash)
          rescue ::JWT::ExpiredSignature
            false
          rescue StandardError
            nil
          end

          # A value in a token stands for itself, or for a record by its GlobalID, which has to exist.
          def value(value)
            id = ::GlobalID.parse(value) if value.is_a?(String) && defined?(::GlobalID::Locator)
            return value unless id

            ::GlobalID::Locator.locate(id) || raise(ArgumentError, "no record has the GlobalID #{id}")
          end
        end
      end
    end
  end
end
