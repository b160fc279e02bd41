# frozen_string_literal: true

module Fairlead
  module Cable
    # The callbacks of a process, by channel. The process has one subscription for each channel, for all callbacks of all owners: the
    # adapters of one or several Action Cable servers, and of servers before and after a restart.
    class Subscribers
      Subscriber = Struct.new(:owner, :callback)
      private_constant :Subscriber

      def initialize
        @lock = Mutex.new
        @all = {} # channel => [Subscriber, …], replaced and never changed
      end

      # Adds a callback, for each message from now on. +owner+: calls it, with #call_back(callback, message), or with #call_back_later
      # on the thread of the publisher.
      def add(channel, owner, callback)
        channel = PubSub::Subscription.channel_of_app(channel)
        subscription = @lock.synchronize do
          present = @all[channel]
          made = subscribe(channel) unless present # first: the thread may be killed in between
          @all[channel] = [*present, Subscriber.new(owner, callback)]
          made
        end
        PubSub.registry.wait_for(subscription) if subscription
      end

      # Removes a callback of an owner.
      def remove(channel, owner, callback)
        channel = channel.b
        @lock.synchronize { keep(channel) { |one| !(one.owner.equal?(owner) && one.callback == callback) } }
      end

      # Removes all callbacks of an owner.
      def remove_all(owner)
        @lock.synchronize do
          @all.keys.each { |channel| keep(channel) { |one| !one.owner.equal?(owner) } } # rubocop:disable Style/HashEachMethods -- it deletes
        end
      end

      # Calls the callbacks of a channel, if published messages do not get to them.
      def deliver_here(channel, message)
        place = Place.current
        deliver(channel.b, message, :call_back_later) unless place.delivers? || place.copy?
      end

      private

      # Returns the subscription if brokers may have to confirm it.
      def subscribe(channel)
        callable = ->(_, message) { deliver(channel, message, :call_back) }
        subscription = PubSub::Subscription.new(channel, callable: callable, owner: :cable)
        subscription if PubSub.registry.add(subscription)
      end

      def keep(channel, &wanted)
        present = @all[channel] or return
        left = present.select(&wanted)
        return @all[channel] = left if left.any?

        @all.delete(channel)
        PubSub.registry.unsubscribe(channel, owner: :cable)
      end

      def deliver(channel, message, way)
        subscribers = @lock.synchronize { @all[channel] }
        subscribers&.each { |one| one.owner.public_send(way, one.callback, message) }
      end
    end
  end
end
