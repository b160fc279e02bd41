# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Connection::Base: +remote_connections.where(…).disconnect+ with our adapter. Rails subscribes each
      # connection to a channel of its own. Here a process has one subscription for all its connections, and does not wait for
      # the turn of a client: its current action may take long.
      module RemoteDisconnects
        # The connections of this process by channel.
        class Registry
          def initialize
            @connections = {}
            @lock = Mutex.new
          end

          def add(channel, connection)
            @lock.synchronize { (@connections[channel] ||= {}.compare_by_identity)[connection] = true }
          end

          def remove(channel, connection)
            @lock.synchronize do
              own = @connections[channel] or next
              own.delete(connection)
              @connections.delete(channel) if own.empty?
            end
          end

          # Passes a message on to its connections.
          def publish(channel, message)
            own = @lock.synchronize { @connections[channel]&.keys } or return
            own.each { |connection| RemoteDisconnects.process(connection, message) }
          end
        end

        # The beginning of Rails' internal channels.
        START = "action_cable/"

        @registries = {} # beginning of channels, with the prefix => Registry
        @lock = Mutex.new

        class << self
          # The Registry for an adapter's channels. Subscribes this process with the first connection.
          def registry(pubsub)
            start = Sockets.channel(pubsub, START)
            @lock.synchronize { @registries[start] ||= Registry.new.tap { |registry| subscribe(start, registry) } }
          end

          # True if the connection has no subscription of its own. A broker that is the default engine may know no patterns.
          def for?(connection)
            Socket.of(connection) && Sockets.own?(connection.pubsub) && Sockets.without_broker?
          end

          # Runs what was sent to the connection since a position: in a former process, or on the way from there.
          def catch_up(connection, position)
            return unless position && connection.connection_identifier.present? && for?(connection)

            channel = Sockets.channel(connection.pubsub, connection.send(:internal_channel))
            (Extended.past(channel, position) || []).each { |_, _, message| process(connection, message) }
          end

          def process(connection, message)
            connection.send(:process_internal_message, ::ActiveSupport::JSON.decode(message))
          end

          private

          def subscribe(start, registry)
            pattern = "#{start.gsub(/[*?\[\]\\]/) { |special| "\\#{special}" }}*"
            Fairlead.subscribe(pattern, match: :redis) { |channel, message| registry.publish(channel, message) }
          end
        end

        private

        def subscribe_to_internal_channel
          return super unless connection_identifier.present? && RemoteDisconnects.for?(self)

          RemoteDisconnects.registry(pubsub).add(Sockets.channel(pubsub, internal_channel), self)
          logger.info "Registered connection (#{connection_identifier})"
        end

        def unsubscribe_from_internal_channel
          super
          return unless RemoteDisconnects.for?(self)

          RemoteDisconnects.registry(pubsub).remove(Sockets.channel(pubsub, internal_channel), self)
        end
      end
    end
  end
end
