# frozen_string_literal: true

module Fairlead
  # A connection that has been upgraded to a WebSocket or an event stream, as the application's handler sees it. The
  # extension defines the class and what moves bytes; here is what takes its arguments in many forms.
  class Client
    # Subscribes to a channel: `subscribe("news")`, `subscribe(to: "news")`. What is published there goes straight to the
    # client, unless there is a block (or `handler:`), which is called with the channel and the message instead, both
    # UTF-8 or, what is not valid as such, binary. A second subscription of the same name replaces the first.
    #
    # +options+: `match: :redis` (or :glob, or just `true`) makes the name a pattern like "news.*", `match: :subject` one of
    # tokens like "news.*.sport" and "news.>"; `as: :binary` sends binary frames, which an event stream does not have.
    #
    # Returns the name as given; nil when the client is closed, or cannot be sent what was asked for.
    def subscribe(name = nil, options = nil, **keywords, &block)
      subscription = PubSub::Subscription.parse(name, options, keywords, block)
      return if subscription.binary? && protocol == :sse

      made = PubSub.registry.joined(subscription) do
        subscribe_natively(subscription.channel, subscription.native_match, subscription.binary?, subscription.callable)
      end
      made && subscription.name
    end

    # Ends the subscription made with that name; the text alone counts, whether it was a pattern or not. False when there
    # was none, nil when the client is closed.
    def unsubscribe(name = nil, _options = nil, **keywords)
      channel = PubSub::Subscription.parse(name, nil, keywords).channel
      left = PubSub.registry.left(channel) { unsubscribe_natively(channel) }
      left && true
    end

    # As Fairlead.publish. The client gets the message too, if it has subscribed to the channel.
    def publish(to = nil, message = nil, engine = nil, **keywords)
      Fairlead.publish(to, message, engine, **keywords)
    end

    # The version of pub/sub it has.
    def pubsub? = 1
  end
end
