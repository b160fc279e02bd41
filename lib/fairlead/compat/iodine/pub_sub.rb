# frozen_string_literal: true

# Subscriptions and messages. Arguments and results are the same in both; this file adds the names that only iodine has.
module Iodine
  class << self
    # Subscribes this process: `subscribe(name, match: :redis) { |source, message| }`.
    def subscribe(...) = Fairlead.subscribe(...)

    def unsubscribe(...) = Fairlead.unsubscribe(...)

    # `publish(name, message, engine = nil)`, also by keywords; `channel:` is `to:`, as in 0.4.
    def publish(...) = Fairlead.publish(...)

    # The names of 0.4.
    def default_pubsub = PubSub.default

    def default_pubsub=(engine)
      PubSub.default = engine
    end
  end

  # The engines that carry messages, under the names of Fairlead::PubSub.
  module PubSub
    CLUSTER = Fairlead::PubSub::CLUSTER
    PROCESS = Fairlead::PubSub::PROCESS
    SIBLINGS = Fairlead::PubSub::SIBLINGS

    # The superclass of engines, which have #subscribe, #unsubscribe and #publish.
    Engine = Fairlead::PubSub::Engine

    # Publishes to the root process. With workers this is the supervisor, which has no subscriptions; without workers it is the
    # process that serves.
    class Root < Engine
      def subscribe(_name, _match = nil) = true
      def unsubscribe(_name, _match = nil) = true

      def publish(name, message)
        return Fairlead.publish(name, message, PROCESS) if Iodine.master? && Iodine.worker?

        Fairlead::Compat.missing("Iodine::PubSub::PUBLISH2ROOT with workers", "the supervisor has no subscriptions; use CLUSTER")
      end
    end

    PUBLISH2ROOT = Root.new

    class << self
      def default = Fairlead::PubSub.default

      def default=(engine)
        Fairlead::PubSub.default = engine
      end

      def attach(engine) = Fairlead::PubSub.attach(engine)
      def detach(engine) = Fairlead::PubSub.detach(engine)
      alias dettach detach

      # Tells the engine of every subscription again.
      def reset(engine) = Fairlead::PubSub.reset(engine)
    end
  end
end
