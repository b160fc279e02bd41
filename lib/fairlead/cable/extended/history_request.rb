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

        # The position after which the client has seen nothing of a channel: false if it cannot be one of this server; nil if
        # the client does not ask for this channel.
        def position(channel)
          wanted = @streams[channel]
          return named(wanted) if wanted

          since_time(channel) if @since
        end

        private

        def named(wanted)
          epoch, offset = wanted.values_at("epoch", "offset") if wanted.is_a?(Hash)
          EPOCH.match?(epoch.to_s) && offset.is_a?(Integer) && OFFSETS.cover?(offset) && "#{epoch}.#{offset}"
        end

        def since_time(channel)
          now = PubSub.position or return
          past = Extended.past(channel, @since)
          return now if past.nil? || past.empty?

          "#{now[/\A\h+/]}.#{past.first.first - 1}"
        end
      end
    end
  end
end
