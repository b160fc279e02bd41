# frozen_string_literal: true

module Fairlead
  # A connection that has been upgraded to a WebSocket or an event stream, for the application's handler. The extension
  # defines the class and most of its methods; this file has the methods with several forms of arguments.
  #
  # @!attribute [r] env
  #   @return [Hash{String => Object}] the Rack env of the request that was upgraded
  #
  # @!attribute [r] protocol
  #   @return [:websocket, :sse]
  #
  # @!attribute [r] pending
  #   @return [Integer] the number of writes that the kernel has not taken yet; -1 if the client is closed
  #
  # @!attribute [rw] handler
  #   The object with the callbacks. When it is replaced, the old one gets +on_close+ and then the new one gets +on_open+,
  #   before any waiting event. nil closes the client.
  #   @return [Object, nil]
  #
  # @!attribute [rw] timeout
  #   Seconds of silence before a ping; 0 for never.
  #   @return [Integer, nil] nil if the client is closed
  #   @raise [RangeError] unless it is from 0 to 255
  #
  # @!method open?
  #   @return [Boolean]
  #
  # @!method write(data, **fields)
  #   Sends a message and returns at once; may be called from any thread. A UTF-8 String is sent as text, any other String
  #   as binary, other objects as their +to_s+.
  #   @param data [String, #to_s]
  #   @param fields [Hash] fields of a server-sent event; WebSockets ignore them
  #   @option fields [String, nil] :event the name of the event
  #   @option fields [#to_s, nil] :id the id of the event
  #   @option fields [Integer, nil] :retry milliseconds after which the browser may reconnect
  #   @return [Boolean] false if the client is closed or reads too slowly
  #
  # @!method close(code = nil, reason = nil)
  #   Closes the client after sending everything that was written.
  #   @param code [Integer, nil] the close code of a WebSocket
  #   @param reason [String, nil]
  #   @return [nil]
  #   @raise [ArgumentError] if a peer must not send that code (RFC 6455 section 7.4)
  #
  # @!method defer
  #   Runs the block in the client's turn, after the callbacks that wait already; may be called from any thread.
  #   @return [Boolean] false if the client is closed, or too many messages and blocks wait for its turn (see
  #     +client_pending_messages+)
  #   @raise [ArgumentError] if there is no block
  class Client
    # Subscribes to a channel: `subscribe("news")`, `subscribe(to: "news")`. Messages published there go straight to the
    # client. With a block (or `handler:`) they go to the block instead. A second subscription of the same name replaces
    # the first.
    #
    # @param name [String, Symbol] the channel or pattern; also as `to:` or `channel:`
    # @param options [Hash, true, nil] the keywords as a Hash; true means `match: :redis`
    # @option keywords [:redis, :glob, :subject] :match the name is a pattern such as "news.*" (:redis and :glob are the same),
    #   or a pattern of tokens such as "news.*.sport" and "news.>" (:subject)
    # @option keywords [:binary] :as sends binary frames, which an event stream does not have
    # @option keywords [#call] :handler replaces the block
    # @option keywords [String] :since a position (see {PubSub.position}), or the id of the last event that an event stream has
    #   received: messages of the history after it come first. Events then have their position as the id
    # @yieldparam channel [String] UTF-8, or binary if it is not valid UTF-8
    # @yieldparam message [String] UTF-8, or binary if it is not valid UTF-8
    # @return [String, Symbol, false, nil] the name as given; false if there is one subscription more, but messages since the
    #   position are not kept any more; nil if the client is closed or has too many
    #   subscriptions (see the options +max_subscriptions+, +max_subscriptions_total+ and +max_patterns+), or is an event stream
    #   and +as+ is :binary
    # @raise [ArgumentError] if there is no name, or +match+ or +handler+ is none of these
    # @raise [TypeError] if the name is neither String nor Symbol
    def subscribe(name = nil, options = nil, **keywords, &block)
      subscription = PubSub::Subscription.parse(name, options, keywords, block)
      return if subscription.binary? && protocol == :sse
      return subscribe_since(subscription) if subscription.since

      made = PubSub.registry.joined(subscription) do
        subscribe_natively(subscription.channel, subscription.native_match, subscription.binary?, subscription.callable)
      end
      made && subscription.name
    end

    # Ends the subscription made with that name, whether the name was a channel or a pattern.
    #
    # @param name [String, Symbol] also as `to:` or `channel:`
    # @param _options [Object] ignored, so that it can be called with the arguments of {#subscribe}
    # @return [Boolean, nil] false if there was none, nil if the client is closed
    def unsubscribe(name = nil, _options = nil, **keywords)
      channel = PubSub::Subscription.parse(name, nil, keywords).channel
      left = PubSub.registry.left(channel) { unsubscribe_natively(channel) }
      left && true
    end

    # Delivers the messages of a channel to a WebSocket, in the frames of Action Cable: `{"identifier":…,"message":…}`. Each message
    # has to be JSON. No Ruby runs for a message. A channel may have several identifiers.
    #
    # @param channel [String, Symbol]
    # @param identifier [String] of the client's subscription
    # @param since [String, nil] a position: the messages of the history after it come first
    # @param page [String, nil] the same as a sealed position, which a client has presented. The client gets the messages that its
    #   page has not received; some are lost if the position was not made for this channel
    # @param whole [Boolean] there is no stream if some messages are lost
    # @param extended [Boolean] adds `stream_id`, `epoch` and `offset` to the frames
    # @return [Integer, false, nil] the number of messages of the history; false if some are not kept any more; nil if the client
    #   is closed, is no WebSocket, or has too many subscriptions
    # @raise [ArgumentError] if +since+ is no position
    # @api private
    def stream(channel, identifier, since = nil, page: nil, extended: false, whole: false)
      subscription = PubSub::Subscription.new(channel)
      messages = nil
      PubSub.registry.joined(subscription) do
        count, messages = stream_natively(subscription.channel, identifier, since, page, (extended ? 1 : 0) | (whole ? 2 : 0))
        count
      end
      messages
    end

    # Ends a {stream}.
    #
    # @return [Boolean] false if there was none
    # @api private
    def unstream(channel, identifier)
      name = PubSub::Subscription.channel(channel)
      !PubSub.registry.left(name) { unstream_natively(name, identifier) }.nil?
    end

    # Ends all streams of an identifier.
    #
    # @return [nil]
    # @api private
    def unstream_all(identifier)
      PubSub.forgotten(unstream_all_natively(identifier))
      nil
    end

    # Like {Fairlead.publish}. The client gets the message too, if it has subscribed to the channel.
    #
    # @param to [String, Symbol] the channel
    # @param message [String]
    # @param engine [PubSub::Engine, false, nil]
    # @return [Boolean]
    def publish(to = nil, message = nil, engine = nil, **keywords)
      Fairlead.publish(to, message, engine, **keywords)
    end

    # @return [Integer] the version of publish and subscribe that it supports
    def pubsub? = 1

    private

    def subscribe_since(subscription)
      messages = nil
      made = PubSub.registry.joined(subscription) do
        count, messages = subscribe_since_natively(subscription.channel, subscription.since, subscription.binary?)
        count
      end
      made && (messages ? subscription.name : false)
    end
  end
end
