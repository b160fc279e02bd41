# frozen_string_literal: true

module Iodine
  module PubSub
    # Fairlead::PubSub::Redis. The gem redis is needed only for #initialize, so that code may refer to the class without it.
    class Redis < Engine
      # +ping+ has no effect: TCP keeps the connections alive.
      def initialize(url, ping: nil) # rubocop:disable Lint/UnusedMethodArgument -- iodine takes it
        super()
        @engine = Fairlead::PubSub::Redis.new(url)
      end

      def subscribe(to, match) = @engine.subscribe(to, match)
      def wait_for(to, match) = @engine.wait_for(to, match)
      def unsubscribe(to, match) = @engine.unsubscribe(to, match)
      def publish(to, message) = @engine.publish(to, message)

      def cmd(*)
        Fairlead::Compat.missing("Iodine::PubSub::Redis#cmd", "use a client of the gem redis of your own")
      end
    end
  end
end
