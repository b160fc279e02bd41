# frozen_string_literal: true

require_relative "extended/socket"

module Fairlead
  module Cable
    # AnyCable's sub-protocol for Action Cable, `actioncable-v1-ext-json`: sessions that are restored, history, whispers and
    # presence. Channels and connections are Rails' own.
    module Extended
      autoload :Channels, "fairlead/cable/extended/channels"
      autoload :Commands, "fairlead/cable/extended/commands"
      autoload :Connections, "fairlead/cable/extended/connections"

      PROTOCOL = "actioncable-v1-ext-json"

      @history = {}

      class << self
        # Applies the options of the history.
        def prepare(configuration)
          @history = { most: configuration.history_messages, time: configuration.history_time.ceil }
          Session.allowance = Allowance.new(configuration.history_bytes / [configuration.workers, 1].max, configuration.history_time)
        end

        # The messages of a channel since a position or a time; see PubSub.history.
        def past(channel, since, **more) = PubSub.history(channel, since: since, **@history, **more)

        # The position after all broadcasts so far; nil if they do not go through the history of this server.
        def position = (PubSub.position if Sockets.without_broker?)

        # The position before the broadcasts to a channel since a time, and false if some of them are not kept; nil as for #position.
        def before(channel, seconds)
          Native.position_before(channel, seconds.to_f, *@history.values_at(:most, :time)) if Sockets.without_broker?
        end

        # The parameters of a request; none if they are malformed.
        def query(env)
          ::Rack::Utils.parse_query(env["QUERY_STRING"].to_s)
        rescue StandardError # of Rack and of Ruby, depending on their versions
          {}
        end

        # --- for Sockets

        def extend_server = Cable::Socket.add_protocol(PROTOCOL, Socket)

        # Before the modules of Sockets: their limits apply to all subscriptions.
        def extend_connection(base)
          base.prepend(Connections)
          ::ActionCable::Connection::Subscriptions.prepend(Commands)
        end

        # After the modules of Sockets, which do not know all arguments.
        def extend_channel(base) = base.prepend(Channels)
      end
    end
  end
end
