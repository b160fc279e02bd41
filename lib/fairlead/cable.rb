# frozen_string_literal: true

module Fairlead
  # Action Cable on Fairlead. ActionCable::SubscriptionAdapter::Fairlead connects Rails with this module, which knows nothing of Rails.
  module Cable
    autoload :Events, "fairlead/cable/events"
    autoload :EventStream, "fairlead/cable/event_stream"
    autoload :Extended, "fairlead/cable/extended"
    autoload :Feed, "fairlead/cable/feed"
    autoload :Moved, "fairlead/cable/moved"
    autoload :Place, "fairlead/cable/place"
    autoload :Presence, "fairlead/cable/presence"
    autoload :Reconnection, "fairlead/cable/reconnection"
    autoload :Resumption, "fairlead/cable/resumption"
    autoload :SignedStreams, "fairlead/cable/signed_streams"
    autoload :Socket, "fairlead/cable/socket"
    autoload :Sockets, "fairlead/cable/sockets"
    autoload :Positions, "fairlead/cable/positions"
    autoload :Subscribers, "fairlead/cable/subscribers"
    autoload :TurboStreams, "fairlead/cable/turbo_streams"

    # The settings of config/cable.yml that are no options of a broker.
    OWN_SETTINGS = %w[adapter url channel_prefix publish_socket streams_secret jwt_secret].freeze
    private_constant :OWN_SETTINGS

    @lock = Mutex.new

    class << self
      # Publishes a broadcast: through a broker if one was set, or else with history, to all processes of the server to which this
      # process belongs, or of the server of this application that runs beside this process.
      #
      # @param channel [String]
      # @param payload [String]
      # @return [Boolean] false if this is known to fail
      # @raise [ArgumentError] if the channel begins with `fairlead/`
      def broadcast(channel, payload)
        PubSub::Subscription.channel_of_app(channel)
        return @feed.broadcast(channel, payload) if @feed
        return Fairlead.publish(channel, payload) unless PubSub.default.equal?(PubSub::CLUSTER)

        broadcast_here(channel, payload)
      end

      # The same without a broker: to the server of this machine.
      #
      # @return [Boolean]
      # @api private
      def broadcast_here(channel, payload)
        return Fairlead.publish(channel, payload, PubSub::HISTORY) if Place.current.server?

        server ? server.publish(channel, payload, history: true) : true
      end

      # A position for a channel of Action Cable, for a page that subscribes to it with the parameter +since+: messages that were
      # broadcast since the beginning of the current request come first.
      #
      # @param broadcasting [String] as for +stream_from+; for a model, +SomeChannel.broadcasting_for(model)+
      # @param env [Hash, nil] of the current request
      # @return [String, nil] nil if this server keeps no messages for it
      def position(broadcasting, env = nil) = Positions.sealed(broadcasting, env)

      # Carries broadcasts to other machines through a broker, and keeps the history of this server. Call it before the server starts;
      # another call with the same URL has no effect.
      #
      # @param url [String, nil] see {PubSub.for}; nil for no broker
      # @param options [Hash] options of the engine
      # @return [void]
      # @raise [ArgumentError] if no broker has such a URL
      # @raise [LoadError] if the gem of the broker is missing
      def connect(url, **options)
        @lock.synchronize do
          next if @connected == [url, options]

          @feed&.then { |feed| Background.current.remove(feed) }
          @feed = url && Feed.new(PubSub.for(url, **options))
          @feed&.then { |feed| Background.current.add(feed) }
          @connected = [url, options]
        end
      end

      # Connects to the broker in config/cable.yml, if it has one: `url`, and options of its engine.
      #
      # @param settings [Hash{String => Object}]
      # @return [void]
      # @api private
      def configure(settings)
        connect(settings["url"], **settings.except(*OWN_SETTINGS).transform_keys(&:to_sym))
      end

      # The Feed, if there is a broker.
      #
      # @api private
      attr_reader :feed

      # The callbacks of this process.
      #
      # @api private
      def subscribers = @subscribers || @lock.synchronize { @subscribers ||= Subscribers.new }

      # The server beside this process: a PubSub::RunningServer, or nil if there is none.
      #
      # @api private
      attr_accessor :server
    end
  end
end
