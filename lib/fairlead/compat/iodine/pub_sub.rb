# frozen_string_literal: true

# Subscriptions and messages. Names, patterns, engines and what comes back are Fairlead's, which are iodine's; here is what
# only iodine had.
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

  # The engines that carry messages, as Fairlead::PubSub has them.
  module PubSub
    CLUSTER = Fairlead::PubSub::CLUSTER
    PROCESS = Fairlead::PubSub::PROCESS
    SIBLINGS = Fairlead::PubSub::SIBLINGS

    # What a broker is reached by: a subclass with #subscribe, #unsubscribe and #publish.
    Engine = Fairlead::PubSub::Engine

    # iodine's root process could have subscriptions. Fairlead's supervisor has none; without workers the root is the
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

      # Tells the engine about every subscription there is.
      def reset(engine) = Fairlead::PubSub.reset(engine)
    end
  end
end
