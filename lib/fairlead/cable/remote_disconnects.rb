# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Connection::Base: +remote_connections.where(…).disconnect+ with our adapter. Rails subscribes each
      # connection to a channel of its own. Here a process has one subscription for all its connections, and does not wait for
      # the turn of a client: its current action may take long.
      module RemoteDisconnects
        # The connections of this process by channel, and the messages of the last minutes, for connections that come from another process.
        class Registry
          # Seconds for which a message is kept, and the most messages.
          TIME = 600
          MOST = 10_000

          # Seconds by which a message may come later to one process than to another.
          LATE = 1

          def initialize
            @connections = {}
            @recent = [] # [time, channel, message]
            @known_since = Clock.now
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

          # The messages of a channel since a time, each with the time and the channel; nil if some are not kept any more.
          def past(channel, time)
            @lock.synchronize { @recent.select { |at, name,| at > time - LATE && name == channel } if time > @known_since }
          end

          # Passes a message on to its connections.
          def publish(channel, message)
            own = @lock.synchronize do
              keep(channel, message)
              @connections[channel]&.keys
            end
            own&.each { |connection| RemoteDisconnects.process(connection, message) }
          end

          private

          def keep(channel, message)
            @recent << [Clock.now, channel, message]
            @known_since = @recent.shift.first while @recent.size > MOST || @recent.first.first < Clock.now - TIME
          end
        end

        # The beginning of Rails' internal channels.
        START = "action_cable/"

        @registries = {} # beginning of channels, with the prefix => Registry
        @lock = Mutex.new

        class << self
          # Subscribes each process before its first connection, which may come from another one. +prefix+: of channels, or nil.
          def listen(prefix) = registry_of([prefix, START].compact.join(":"))

          # The Registry for an adapter's channels. Subscribes this process with the first connection, if it has not listened before.
          def registry(pubsub) = registry_of(Sockets.channel(pubsub, START))

          def registry_of(start)
            @lock.synchronize { @registries[start] ||= Registry.new.tap { |registry| subscribe(start, registry) } }
          end

          # True if the connection has no subscription of its own. A broker that is the default engine may know no patterns.
          def for?(connection)
            Socket.of(connection) && Sockets.own?(connection.pubsub) && Sockets.without_broker?
          end

          # Runs what was sent to the connection since it has left another process. Returns false if that is not known any more.
          def catch_up(connection, moved)
            return true unless connection.connection_identifier.present? && for?(connection)

            channel = Sockets.channel(connection.pubsub, connection.send(:internal_channel))
            past = moved.position && Extended.past(channel, moved.position) # the history may be off, or too small for busy minutes
            past ||= registry(connection.pubsub).past(channel, moved.left) or return false
            past.each { |_, _, message| process(connection, message) }
            true
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
