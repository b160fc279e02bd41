# frozen_string_literal: true

module Fairlead
  module Cable
    # Serves Action Cable's WebSockets natively, in place of Rails' hijacked sockets and their threads. Rails' Connection,
    # Channel and Server stay as they are: the modules of this folder replace their transport, and only for requests that this
    # server can upgrade. Applications without Action Cable load none of this.
    module Sockets
      autoload :Heartbeat, "fairlead/cable/heartbeat"
      autoload :Identifiers, "fairlead/cable/identifiers"
      autoload :Limit, "fairlead/cable/limit"
      autoload :PeriodicTimers, "fairlead/cable/periodic_timers"
      autoload :RemoteDisconnects, "fairlead/cable/remote_disconnects"
      autoload :Streams, "fairlead/cable/streams"
      autoload :Upgrade, "fairlead/cable/upgrade"

      # The name of our adapter in config/cable.yml.
      ADAPTER = "fairlead"

      # The option +cable_sockets+, and the one with the largest number of subscriptions of a client; 0 for no limit.
      @mode = :auto
      @max_subscriptions = 0

      class << self
        attr_reader :mode, :max_subscriptions

        # Called with the application: applies the options, if the application has loaded Action Cable.
        def prepare(configuration)
          @mode = configuration.cable_sockets
          @max_subscriptions = configuration.max_subscriptions
          Extended.prepare(configuration)
          return unless defined?(::ActionCable)

          install if mode != :rails
          settings = (::ActionCable.server.config.cable || {}).transform_keys(&:to_s)
          prepare_adapter(settings) if settings["adapter"].to_s == ADAPTER
        end

        # Connections hear of remote disconnects. Pages have positions. The broker is used before the first broadcast: the history of this
        # server also needs messages of other machines.
        def prepare_adapter(settings)
          AppLoader.use(Positions)
          RemoteDisconnects.listen(settings["channel_prefix"]) if mode != :rails && without_broker?
          Cable.configure(settings) if settings["url"]
        end

        # Extends Action Cable as soon as its parts are loaded.
        def install
          return if @installed

          @installed = true
          TurboStreams.install
          ::ActiveSupport.on_load(:action_cable) { Sockets.extend_server }
          ::ActiveSupport.on_load(:action_cable_connection) { Sockets.extend_connection(self) }
          ::ActiveSupport.on_load(:action_cable_channel) { Sockets.extend_channel(self) }
        end

        # True if sockets of that Action Cable server are to be native.
        def native?(server)
          mode == :native || (mode == :auto && server.config.cable&.fetch("adapter", nil).to_s == ADAPTER)
        end

        # True if +pubsub+ is our adapter.
        def own?(pubsub)
          defined?(::ActionCable::SubscriptionAdapter::Fairlead) && pubsub.is_a?(::ActionCable::SubscriptionAdapter::Fairlead)
        end

        # True if broadcasts stay in this server, and go through its history.
        def without_broker? = PubSub.default.equal?(PubSub::CLUSTER)

        # The channel of this server for a broadcasting of Action Cable: with the +channel_prefix+ of config/cable.yml, if the
        # adapter knows it.
        def channel(pubsub, broadcasting)
          pubsub.respond_to?(:channel_with_prefix, true) ? pubsub.send(:channel_with_prefix, broadcasting) : broadcasting
        end

        # --- for the hooks

        def extend_server
          Extended.extend_server
          ::ActionCable::Server::Base.prepend(Heartbeat)
          # Rails 8.2 has it beside its Server::Socket.
          owner = ::ActionCable::Connection.const_defined?(:WebSocket, false) ? ::ActionCable::Connection : ::ActionCable::Server::Socket
          owner::WebSocket.prepend(Upgrade)
        end

        def extend_connection(base)
          Extended.extend_connection(base)
          base.prepend(RemoteDisconnects)
          ::ActionCable::Connection::Subscriptions.prepend(Limit)
        end

        def extend_channel(base)
          base.prepend(Identifiers)
          base.prepend(Streams)
          base.prepend(PeriodicTimers)
          Extended.extend_channel(base)
        end
      end
    end
  end
end
