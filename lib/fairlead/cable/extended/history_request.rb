# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # The history that a client asks for: the positions of streams, and a time for streams without one.
      class HistoryRequest
        EPOCH = /\A\h{1,16}\z/
        OFFSETS = (0...1 << 64)

        # Nil if it is none.
        def self.of(data)
          return unless data.is_a?(Hash)

          streams = data["streams"]
          since = data["since"]
          streams = {} unless streams.is_a?(Hash)
          since = nil unless since.is_a?(Numeric) && since.positive?
          new(streams, since) if since || streams.any?
        end

        def initialize(streams, since)
          @streams = streams
          @since = since
        end

        # True if the client asks for this channel by a position.
        def names?(channel) = @streams.key?(channel)

        # The position after which the client wants the messages of a channel, or nil if there cannot be one; and false if it is known
        # that some of them are not kept. Nil if the client does not ask for this channel.
        def position(channel)
          return named(@streams[channel]) if names?(channel)

          Extended.before(channel, @since) || [nil, false] if @since
        end

        private

        def named(wanted)
          epoch, offset = wanted.values_at("epoch", "offset") if wanted.is_a?(Hash)
          is_position = EPOCH.match?(epoch.to_s) && offset.is_a?(Integer) && OFFSETS.cover?(offset)
          is_position ? ["#{epoch}.#{offset}", true] : [nil, false]
        end
      end
    end
  end
end
