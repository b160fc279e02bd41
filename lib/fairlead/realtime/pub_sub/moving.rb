# frozen_string_literal: true

module Fairlead
  module PubSub
    # The channels of a worker that ends, for brokers: its clients move to other workers, which have to be subscribed there before. So
    # the worker names its channels to them, and they subscribe for a while.
    class Moving
      # The channel of the server for that. No broker hears of it.
      CHANNEL = "fairlead/pubsub/moving"

      # Seconds for which the channels are kept. Channels with subscribers stay.
      TIME = 60

      # Seconds that the other workers have to subscribe at the broker before the first client moves.
      LEAD = 0.5

      # As of Handover::Fields. The number of a field is the kind of match, and its bytes are the channel.
      FORMAT = 1

      # +registry+: of this process. Its methods #hold and #forgotten are called.
      def initialize(registry, background)
        @registry = registry
        @background = background
      end

      # Hears of other workers from now on.
      def start
        @background.native.subscribe(CHANNEL, Subscription::NATIVE[nil], ->(_, text) { hold(text.b) })
      end

      # Names channels to the other workers, and gives them time to subscribe. +known+: channel => kinds of match.
      def tell(known)
        fields = known.flat_map { |channel, matches| matches.map { |match| [Subscription::NATIVE.fetch(match), channel] } }
        return if fields.empty?

        @background.native.publish(CHANNEL, Handover::Fields.pack(FORMAT, fields), SIBLINGS.number)
        sleep LEAD
      end

      private

      def hold(text)
        fields = Handover::Fields.unpack(FORMAT, text) or return
        channels = fields.filter_map { |number, channel| [channel, Subscription::NATIVE.key(number)] if Subscription::NATIVE.value?(number) }
        @registry.hold(channels)
        @background.timers.after(TIME, -> { @registry.forgotten(channels.map(&:first)) })
      end
    end
  end
end
