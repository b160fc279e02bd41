# frozen_string_literal: true

require "json"

module Fairlead
  # Action Cable on Fairlead.
  module Cable
    # Streams without a channel class: a client subscribes to the channel `$pubsub` with `signed_stream_name`, or with `stream_name`
    # if its connection allows public streams. Names are signed as AnyCable signs them.
    module SignedStreams
      autoload :Channel, "fairlead/cable/signed_streams/channel"

      NAME = "$pubsub"

      # Channels of Rails and of this server: `action_cable/…` can close connections.
      RESERVED = %r{\A(?:action_cable|fairlead)/}

      class << self
        # A new channel for an identifier; nil if it is not one of these.
        def channel(connection, identifier)
          return unless identifier.is_a?(String) && identifier.include?(NAME)

          parameters = ::ActiveSupport::JSON.decode(identifier)
          return unless parameters.is_a?(Hash) && parameters["channel"] == NAME

          Channel.new(connection, identifier, parameters.with_indifferent_access)
        rescue JSON::ParserError
          nil
        end

        # The name in a signed name; nil if the signature is wrong, or there is no key.
        def verified(signed, server)
          name = verifier(server)&.verified(signed.to_s)
          name if name.is_a?(String)
        end

        def verifier(server)
          key = Cable.secret(server, "streams_secret") || rails_key or return
          ::ActiveSupport::MessageVerifier.new(key, digest: "SHA256", serializer: JSON)
        end

        private

        def rails_key
          ::Rails.application&.key_generator&.generate_key("fairlead/signed_streams") if defined?(::Rails.application)
        end
      end
    end

    class << self
      # Signs the name of a stream for a page, so that its client may subscribe to `$pubsub` with it.
      #
      # @param streamables [String, Symbol, Object, Array] as for `turbo_stream_from`; broadcast to their {stream_name}
      # @return [String]
      def signed_stream_name(streamables)
        verifier = SignedStreams.verifier(::ActionCable.server)
        raise Error, "there is no key for signed streams; set streams_secret in config/cable.yml" unless verifier

        verifier.generate(stream_name(streamables))
      end

      # @return [String] the broadcasting of records or names
      def stream_name(streamables)
        return streamables.map { |one| stream_name(one) }.join(":") if streamables.is_a?(Array)

        streamables.respond_to?(:to_gid_param) ? streamables.to_gid_param : streamables.to_s
      end

      # A secret of config/cable.yml; nil if it is empty, because an environment variable is not set, for example.
      #
      # @api private
      def secret(server, name)
        cable = server.config.cable or return
        secret = (cable[name] || cable[name.to_sym]).to_s
        secret unless secret.strip.empty?
      end
    end
  end
end
