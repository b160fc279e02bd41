# frozen_string_literal: true

module Iodine
  module PubSub
    # Fairlead::PubSub::Redis, which needs the gem redis; the class is there without it, so that one can ask for it.
    class Redis < Engine
      # +ping+ has no effect: what keeps the connections alive is TCP.
      def initialize(url, ping: nil) # rubocop:disable Lint/UnusedMethodArgument -- iodine takes it
        super()
        @engine = Fairlead::PubSub::Redis.new(url)
      end

      def subscribe(to, match) = @engine.subscribe(to, match)
      def unsubscribe(to, match) = @engine.unsubscribe(to, match)
      def publish(to, message) = @engine.publish(to, message)

      def cmd(*)
        Fairlead::Compat.missing("Iodine::PubSub::Redis#cmd", "use a client of the gem redis of your own")
      end
    end
  end
end
