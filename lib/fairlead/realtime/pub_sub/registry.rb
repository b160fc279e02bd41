# frozen_string_literal: true

require "monitor"

module Fairlead
  module PubSub
    # What this process subscribes to, and the engines that are told of it. The extension counts the subscribers of each
    # name; this passes on when the first one has come and the last one has gone. It also keeps the subscriptions of the
    # process itself, so that each worker, and a server that starts later, makes them again.
    #
    # Subscriptions are made and announced under one lock, so that engines are told of them in order.
    class Registry
      # +background+: the Background, which has the extension and the log.
      def initialize(background)
        @background = background
        @lock = Monitor.new
        @engines = []
        @own = {}   # channel => Subscription
        @known = {} # channel => [match, …] that the engines have been told
      end

      def default = @default || CLUSTER

      def default=(engine)
        @default = attach(engine)
      end

      def attach(engine)
        check(engine)
        @lock.synchronize do
          next if @engines.include?(engine)

          @engines += [engine]
          notify_all(:subscribe, engine)
        end
        engine
      end

      def detach(engine)
        check(engine)
        @lock.synchronize do
          @default = nil if @default.equal?(engine)
          next unless @engines.include?(engine)

          @engines -= [engine]
          notify_all(:unsubscribe, engine)
        end
        engine
      end

      def reset(engine)
        check(engine)
        @lock.synchronize { notify_all(:subscribe, engine) }
        engine
      end

      # Hands a message to +engine+ (nil: the default, false: this process). True when it is on its way.
      def publish(to, message, engine)
        channel = Subscription.channel(to)
        raise ArgumentError, "the message is missing" if message.nil?
        raise TypeError, "a message is a String, not #{message.class}" unless message.is_a?(String)

        engine = check(engine.nil? ? default : engine || PROCESS)
        return @background.native.publish(channel, message, engine.number) if engine.is_a?(Scope)

        log_failures(engine, :publish) { engine.publish(channel, message) } ? true : false
      end

      # --- the subscriptions of the process

      def subscribe(subscription)
        raise ArgumentError, "a subscription of the process needs a block or a handler" unless subscription.callable

        @lock.synchronize do
          @own[subscription.channel] = subscription
          make(subscription)
        end
        subscription.name
      end

      # False when there was none.
      def unsubscribe(name)
        channel = Subscription.channel(name)
        @lock.synchronize do
          left(channel) { @background.native.unsubscribe(channel) }
          @own.delete(channel) ? true : false
        end
      end

      # Makes those of the process; for Background.
      def start
        @lock.synchronize { @own.each_value { |subscription| make(subscription) } }
      end

      # Nobody is subscribed any more; for Background.
      def stop
        @lock.synchronize { @known.keys.each { |channel| withdraw(channel) } } # rubocop:disable Style/HashEachMethods -- it deletes
      end

      # --- what happens to a channel

      # The block subscribes; it returns how many subscribers there are then, or nil if it could not.
      def joined(subscription)
        @lock.synchronize do
          count = yield
          announce(subscription.channel, subscription.match) if count
          count
        end
      end

      # The block ends a subscription; it returns how many subscribers are left.
      def left(channel)
        @lock.synchronize do
          count = yield
          withdraw(channel) if count == 0 # rubocop:disable Style/NumericPredicate -- it may be false
          count
        end
      end

      # The last subscribers of these have gone, some time ago: others may have come since.
      def forgotten(names)
        @lock.synchronize do
          names.each { |channel| withdraw(channel) if @known.key?(channel) && without_subscribers?(channel) }
        end
      end

      private

      def make(subscription)
        joined(subscription) do
          @background.native.subscribe(subscription.channel, subscription.native_match, subscription.callable)
        end
      end

      def announce(channel, match)
        matches = @known[channel] ||= []
        return if matches.include?(match)

        matches << match
        @engines.each { |engine| notify(engine, :subscribe, channel, match) }
      end

      def withdraw(channel)
        (@known.delete(channel) || []).each do |match|
          @engines.each { |engine| notify(engine, :unsubscribe, channel, match) }
        end
      end

      # Only a subscription says how many there are.
      def without_subscribers?(channel)
        return false if @own.key?(channel)

        native = @background.native
        native.subscribe(channel, Subscription::NATIVE[nil], ->(_, _) {})
        [0, nil].include?(native.unsubscribe(channel))
      end

      def notify_all(what, engine)
        @known.each do |channel, matches|
          matches.each { |match| notify(engine, what, channel, match) }
        end
      end

      def notify(engine, what, channel, match)
        log_failures(engine, what) { engine.public_send(what, channel, match) }
      end

      def log_failures(engine, doing)
        yield
      rescue StandardError, ScriptError => e
        @background.log.pub_sub_engine_failed(engine, doing, e)
        false
      end

      def check(engine)
        engine.is_a?(Engine) ? engine : raise(TypeError, "#{engine.inspect} is not a Fairlead::PubSub::Engine")
      end
    end
  end
end
