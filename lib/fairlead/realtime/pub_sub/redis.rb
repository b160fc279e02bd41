# frozen_string_literal: true

begin
  require "redis"
rescue LoadError
  raise LoadError, "Fairlead::PubSub::Redis needs the gem redis: add it to the Gemfile"
end

module Fairlead
  module PubSub
    # Carries messages between machines through Redis or Valkey, with the gem redis:
    #
    #   Fairlead::PubSub.default = Fairlead::PubSub::Redis.new("redis://:password@10.0.0.5:6379")
    #
    # Each process has two connections, opened when they are first used: one for commands, one for messages. Messages go to
    # Redis only, and even the publishing process receives them from there. If Redis cannot be reached, no caller waits for it:
    # {#publish} returns false, and messages are lost. Subscriptions are made again when Redis is back. While subscriptions of
    # this process are missing, {#publish} returns false, too. A message is sent once: if the connection breaks before Redis has
    # confirmed it, {#publish} returns false although it may arrive.
    class Redis < Engine
      autoload :Commands, "fairlead/realtime/pub_sub/redis/commands"
      autoload :Address, "fairlead/realtime/pub_sub/redis/address"
      autoload :Link, "fairlead/realtime/pub_sub/redis/link"
      autoload :Outage, "fairlead/realtime/pub_sub/redis/outage"
      autoload :Pipeline, "fairlead/realtime/pub_sub/redis/pipeline"
      autoload :Subscriber, "fairlead/realtime/pub_sub/redis/subscriber"
      autoload :Wanted, "fairlead/realtime/pub_sub/redis/wanted"
      autoload :Wire, "fairlead/realtime/pub_sub/redis/wire"

      # Seconds that a connection or a reply may take.
      TIMEOUT = 1

      # Seconds that a new subscription waits for Redis to confirm it. Messages published after that are received.
      CONFIRMATION_TIMEOUT = 1

      # Seconds between two signs of life that a silent connection has to give.
      PING_INTERVAL = 2

      # Seconds between attempts to reach Redis; the last one repeats.
      PAUSES = [0.1, 0.2, 0.5, 1, 2].freeze

      # Connects when it is first used.
      #
      # @param url [String] redis:, rediss: or unix:
      # @param options [Hash] options of Redis.new, for example +password+, +ssl_params+ or +sentinels+
      # @raise [ArgumentError] if the URL is invalid
      def initialize(url, **options)
        super()
        address = Address.new(url)
        @name = "Redis at #{address.name}"
        @options = { url: url, timeout: TIMEOUT, **options, reconnect_attempts: 0 }
        @options[:tcp_keepalive] ||= 60 if Wire.classic? && !address.unix? # later versions do this by default
        @lock = Mutex.new
        ::Redis.new(**@options)
      rescue ArgumentError => e
        raise ArgumentError, address ? e.message.gsub(url, address.name) : e.message, cause: nil
      end

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [true]
      # @see Engine#subscribe
      def subscribe(to, match)
        link.subscribe(to, match)
        true
      end

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [void]
      # @see Engine#wait_for
      def wait_for(to, match) = link.wait_for(to, match)

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [true]
      # @see Engine#unsubscribe
      def unsubscribe(to, match)
        link.unsubscribe(to, match)
        true
      end

      # @param to [String] the channel
      # @param message [String]
      # @return [Boolean] false while Redis cannot be reached
      def publish(to, message) = link.publish(to, message)

      # Closes both connections of this process. They are opened again when they are used; to prevent that, detach the engine
      # first.
      #
      # @return [void]
      def close
        @lock.synchronize do
          @link&.close if @pid == Process.pid
          @link = nil
        end
      end

      def inspect = "#<#{self.class} #{@name}>"

      private

      # The connections of this process. A forked process opens its own, and does not use its parent's.
      def link
        @lock.synchronize do
          @link = nil unless @pid == Process.pid
          @pid = Process.pid
          @link ||= Link.new(@options, @name) { |channel, message| deliver(channel, message) }
        end
      end

      def deliver(channel, message) = Fairlead.publish(channel, message, PROCESS)
    end
  end
end
