# frozen_string_literal: true

module Fairlead
  module Cable
    module SignedStreams
      # The channel `$pubsub`.
      class Channel < ::ActionCable::Channel::Base
        include Presence

        def subscribed
          open = open_name
          stream = open || SignedStreams.verified(params[:signed_stream_name], connection.send(:server))
          return reject if stream.nil? || RESERVED.match?(stream)

          shares_presence(stream) if open
          stream_from(stream, whisper: !open.nil?)
        end

        private

        # The name of a public stream.
        def open_name
          name = params[:stream_name]
          name if name.is_a?(String) && params[:signed_stream_name].nil? && connection.allow_public_streams?
        end
      end
    end
  end
end
