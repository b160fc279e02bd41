# frozen_string_literal: true

require "monitor"

module Fairlead
  module PubSub
    # The subscriptions of this process, and the engines that are told of them. The extension counts the subscribers of each
    # channel; the registry tells the engines of the first and the last one. It also keeps the subscriptions of the process
    # itself, so that each worker, and a server that starts later, makes them again.
    #
    # Subscriptions are made and announced under one lock, so that engines are told in order. No thread waits for a broker with
    # that lock: Engine#wait_for is called without it.
    class Registry
      # +background+: gives access to the extension and the log.
      def initialize(background)
        @background = background
        @lock = Monitor.new
        @engines = []
        @own = {}   # channel => { owner => Subscription of the process }
        @known = {} # channel => [match, …], as the engines have been told
        @moving = Moving.new(self, background)
      end

      def default = @default || CLUSTER

      def default=(engine)
        @default = attach(engine)
      end

      def brokers = @engines.grep(Broker)

      def attach(engine)
        check(engine)
        @lock.synchronize do
          next if @engines.include?(engine)

          @engines += [engine]
          notify_all(:subscribe, engine)
          @moving.start if engines? && @background.serves?
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

      # The same as #publish, for the application. An engine passes on what comes for the server's own channels.
      def publish_of_app(to, message, engine)
        to = Subscription.channel(to)
        is_passed_on = [false, PROCESS].include?(engine) && @lock.synchronize { @known.key?(to) }
        publish(is_passed_on ? to : Subscription.channel_of_app(to), message, engine)
      end

      # Publishes through +engine+ (nil: the default, false: this process). Returns true when the message is on its way.
      def publish(to, message, engine)
        channel = Subscription.channel(to)
        raise ArgumentError, "the message is missing" if message.nil?
        raise TypeError, "a message is a String, not #{message.class}" unless message.is_a?(String)

        engine = check(engine.nil? ? default : engine || PROCESS)
        return publish_within(engine, channel, message) if engine.is_a?(Scope)

        log_failures(engine, :publish) { engine.publish(channel, message) } ? true : false
      end

      # --- the subscriptions of the process

      def subscribe(subscription)
        made = add(subscription)
        wait_for(subscription) if made
        subscription.name
      end

      # The same without waiting for brokers. Returns false if there is no server in this process yet.
      def add(subscription)
        raise ArgumentError, "a subscription of the process needs a block or a handler" unless subscription.callable

        @lock.synchronize do
          owners = @own[subscription.channel] ||= {}
          owners[subscription.owner] = subscription
          make(owners)
        end
      end

      # Waits until messages of its channel arrive. Must not be called with a lock.
      def wait_for(subscription)
        @engines.each do |engine|
          log_failures(engine, :wait_for) { engine.wait_for(subscription.channel, subscription.match) } unless engine.is_a?(Scope)
        end
      end

      # False when there was none. +owner+: as of Subscription.
      def unsubscribe(name, owner: nil)
        channel = Subscription.channel(name)
        @lock.synchronize do
          owners = @own[channel] or next false
          next false unless owners.delete(owner)

          owners.any? ? make(owners) : forget(channel)
          true
        end
      end

      # Makes the subscriptions of the process. Called by Background.
      def start
        @moving.start if engines?
        made = @lock.synchronize { @own.values.select { |owners| make(owners) } }
        made.flat_map(&:values).each { |subscription| wait_for(subscription) }
      end

      # The clients of this process are about to go to other processes. Called by Background.
      def migrating = (@moving.tell(@lock.synchronize { @known.dup }) if engines?)

      # Tells the engines of channels with their kinds of match, for clients that are about to come. Until #forgotten is called, or
      # longer if there are subscribers then.
      def hold(channels)
        @lock.synchronize { channels.each { |channel, match| announce(channel, match) } }
      end

      # Tells the engines that there are no subscribers any more. Called by Background.
      def stop
        @lock.synchronize { @known.keys.each { |channel| withdraw(channel) } } # rubocop:disable Style/HashEachMethods -- it deletes
      end

      # --- the subscribers of a channel

      # The block subscribes; it returns the number of subscribers, or nil if it could not subscribe.
      def joined(subscription, &subscribe)
        count = join(subscription, &subscribe)
        wait_for(subscription) if count
        count
      end

      # The block unsubscribes; it returns the number of remaining subscribers.
      def left(channel)
        @lock.synchronize do
          count = yield
          withdraw(channel) if count == 0 # rubocop:disable Style/NumericPredicate -- it may be false
          count
        end
      end

      # The last subscriber of each of these channels has disconnected a while ago; there may be new ones.
      def forgotten(names)
        names.each do |channel|
          @lock.synchronize { withdraw(channel) if @known.key?(channel) && without_subscribers?(channel) }
        end
      end

      private

      # True if others than Scopes are attached.
      def engines? = @engines.any? { |engine| !engine.is_a?(Scope) }

      def publish_within(scope, channel, message)
        server = Membership.server unless scope.equal?(PROCESS)
        return server.publish(channel, message, history: scope.equal?(HISTORY)) if server

        @background.native.publish(channel, message, scope.number)
      end

      # The extension has one subscription of the process for each channel.
      def make(owners)
        subscription = Subscription.together(owners.values)
        join(subscription) do
          @background.native.subscribe(subscription.channel, subscription.native_match, subscription.callable)
        end
      end

      def forget(channel)
        @own.delete(channel)
        left(channel) { @background.native.unsubscribe(channel) }
      end

      def join(subscription)
        @lock.synchronize do
          count = yield
          announce(subscription.channel, subscription.match) if count
          count
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

      # The extension returns the number of subscribers only when one is added or removed.
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
