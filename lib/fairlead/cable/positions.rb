# frozen_string_literal: true

module Fairlead
  module Cable
    # The positions that pages carry, so that a client gets what was broadcast while its page was loading, or while it was
    # disconnected. A page has the position of the beginning of its request: later reads of the application see earlier broadcasts.
    #
    # It is a middleware in front of the application.
    class Positions
      # The position at the beginning of the request, in the env.
      KEY = "fairlead.position"

      class << self
        # The sealed position for a broadcasting; nil if this server keeps none.
        def sealed(broadcasting, env = nil)
          pubsub = ::ActionCable.server.pubsub
          return unless Sockets.own?(pubsub) && Sockets.without_broker?

          position = env ? env[KEY] : PubSub.position
          position && PubSub.seal(Sockets.channel(pubsub, broadcasting), position)
        end
      end

      def initialize(app)
        @app = app
      end

      def call(env)
        position = PubSub.position
        env[KEY] = position if position
        @app.call(env)
      end
    end
  end
end
