# frozen_string_literal: true

module Fairlead
  # The engines that carry published messages, and the processes that get them. To subscribe and publish, use
  # {Fairlead.subscribe}, {Fairlead.publish} and the methods of {Client}. Delivery within a process is native.
  #
  #   Fairlead::PubSub.default = Fairlead::PubSub::Redis.new("redis://10.0.0.5")
  module PubSub
    autoload :Broker, "fairlead/realtime/pub_sub/broker"
    autoload :Engine, "fairlead/realtime/pub_sub/engine"
    autoload :NATS, "fairlead/realtime/pub_sub/nats"
    autoload :Postgres, "fairlead/realtime/pub_sub/postgres"
    autoload :Redis, "fairlead/realtime/pub_sub/redis"
    autoload :Moving, "fairlead/realtime/pub_sub/moving"
    autoload :Membership, "fairlead/realtime/pub_sub/membership"
    autoload :Registry, "fairlead/realtime/pub_sub/registry"
    autoload :RunningServer, "fairlead/realtime/pub_sub/running_server"
    autoload :Scope, "fairlead/realtime/pub_sub/scope"
    autoload :Subscription, "fairlead/realtime/pub_sub/subscription"

    # Every process of this server; the default.
    CLUSTER = Scope.new("CLUSTER", 0)
    # This process alone; `false` means the same.
    PROCESS = Scope.new("PROCESS", 1)
    # Every process of this server except this one.
    SIBLINGS = Scope.new("SIBLINGS", 2)
    # Every process of this server, and the history: a client that subscribes later can get the message, too.
    HISTORY = Scope.new("HISTORY", 3)

    # The scheme of a broker's URL => the class.
    BROKERS = {
      "redis" => :Redis, "rediss" => :Redis, "unix" => :Redis, "nats" => :NATS, "tls" => :NATS, "postgres" => :Postgres,
      "postgresql" => :Postgres
    }.freeze
    private_constant :BROKERS

    class << self
      # Makes the engine for a broker, and does not attach it.
      #
      # @param url [String] redis:, rediss:, unix: (the socket of a Redis), nats:, tls: (NATS, too), postgres: or postgresql:
      # @param options [Hash] options of the engine
      # @return [Broker]
      # @raise [ArgumentError] if no broker has such a URL
      # @raise [LoadError] if the gem of the broker is missing
      def for(url, **options)
        name = BROKERS[url.to_s[/\A[a-z]+(?=:)/]]
        raise ArgumentError, "the URL of a broker must begin with #{BROKERS.keys.map { |scheme| "#{scheme}:" }.join(", ")}" unless name

        const_get(name).new(url, **options)
      end

      # The counts of the brokers that this process uses.
      #
      # @return [Hash{String => Hash}] the name of the broker => {Broker#statistics}
      def statistics
        own = registry.brokers.to_h { |broker| [broker.name, broker.statistics] }
        Background.current.services.inject(own) { |all, service| all.merge(service.statistics) }
      end

      # @return [Engine] the engine for messages without a named engine
      def default = registry.default

      # Replaces the default engine, and attaches the new one.
      #
      # @param engine [Engine]
      # @raise [TypeError] if it is not an Engine
      def default=(engine)
        registry.default = engine
      end

      # Tells an engine of each channel that this process subscribes to, now and later.
      #
      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError] if it is not an Engine
      def attach(engine) = registry.attach(engine)

      # Stops telling an engine. If it is the default, CLUSTER becomes the default.
      #
      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError] if it is not an Engine
      def detach(engine) = registry.detach(engine)

      # Tells an engine of every channel again, for example after its broker has restarted.
      #
      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError] if it is not an Engine
      def reset(engine) = registry.reset(engine)

      # The position after all messages of the history so far, for `since:` of {Client#subscribe}.
      #
      # @return [String, nil] nil without a server in this process, or without a history
      def position = Native.position

      # A position for a page that will subscribe to a channel: only this server can have made it.
      #
      # @param channel [String, Symbol]
      # @param position [String] see {position}
      # @return [String, nil] nil as for {position}
      def seal(channel, position = self.position) = position && Native.seal_position(Subscription.channel(channel), position)

      # The messages of a channel that were published with {HISTORY} after a position or a time.
      #
      # @param channel [String, Symbol]
      # @param since [String, Time, Numeric] a position, a time, or seconds since the Unix epoch
      # @param most [Integer]
      # @param time [Integer] the age of the oldest message, in seconds
      # @return [Array<Array(Integer, Float, String)>, false, nil] the offset, the time and the message of each; false if some
      #   messages since the position are not kept any more; nil as for {position}
      def history(channel, since:, most: 100, time: 300)
        position, seconds = since.is_a?(String) ? [since, 0.0] : [nil, since.to_f]
        Native.history(Subscription.channel(channel), position, seconds, most, time)
      end

      # The registry of this process.
      #
      # @api private
      def registry = Background.current.pub_sub

      # Called by the extension with the channels that have lost their last subscriber.
      #
      # @api private
      def forgotten(names) = registry.forgotten(names)
    end
  end
end
