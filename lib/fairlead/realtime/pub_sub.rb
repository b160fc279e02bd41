# frozen_string_literal: true

module Fairlead
  # Who carries what is published, and how far. Subscribing and publishing themselves are Fairlead.subscribe,
  # Fairlead.publish and the methods of Client; what delivers to the subscribers of a process is native.
  #
  #   Fairlead::PubSub.default = Fairlead::PubSub::Redis.new("redis://10.0.0.5")
  module PubSub
    autoload :Engine, "fairlead/realtime/pub_sub/engine"
    autoload :Redis, "fairlead/realtime/pub_sub/redis"
    autoload :Registry, "fairlead/realtime/pub_sub/registry"
    autoload :Scope, "fairlead/realtime/pub_sub/scope"
    autoload :Subscription, "fairlead/realtime/pub_sub/subscription"

    # Every process of this server; the default.
    CLUSTER = Scope.new("CLUSTER", 0)
    # This process alone; `false` means the same.
    PROCESS = Scope.new("PROCESS", 1)
    # Every process of this server but this one.
    SIBLINGS = Scope.new("SIBLINGS", 2)

    class << self
      # What carries a message when the publisher names nothing.
      def default = registry.default

      # Replaces it; the new one is attached as well. Raises TypeError for what is no Engine.
      def default=(engine)
        registry.default = engine
      end

      # Has +engine+ told of each channel that this process subscribes to, now and from now on. Raises TypeError.
      def attach(engine) = registry.attach(engine)

      # Ends that. A default engine is none any more then; CLUSTER is.
      def detach(engine) = registry.detach(engine)

      # Tells +engine+ of every channel again, as after it has lost its memory. Raises TypeError.
      def reset(engine) = registry.reset(engine)

      # What publishes, and subscribes for the process: the channels that this process knows.
      def registry = Background.current.pub_sub

      # Called by the extension with the names whose last subscriber went away with its connection.
      def forgotten(names) = registry.forgotten(names)
    end
  end
end
