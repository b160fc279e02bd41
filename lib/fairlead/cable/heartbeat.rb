# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # Action Cable's pings. For ActionCable::Server::Base: its own timer makes each connection send a ping, on threads of its own.
      # Native sockets get their pings from one message for all clients of a process; no Ruby runs for each of them.
      module Heartbeat
        # The channel of this process that all clients with native pings have subscribed to.
        CHANNEL = "fairlead/cable/pings"

        @lock = Mutex.new

        class << self
          # Adds a connection. Returns false if it is not native, or pings in its own way.
          def add(connection)
            socket = Socket.of(connection)
            return false unless socket && plain?(connection)

            @lock.synchronize { start unless @timer&.active? }
            socket.client.subscribe(CHANNEL)
            true
          end

          private

          def plain?(connection) = connection.method(:beat).owner == ::ActionCable::Connection::Base

          def start
            @timer = Fairlead.run_every(::ActionCable::Server::Connections::BEAT_INTERVAL) { ping }
          end

          def ping
            type = ::ActionCable::INTERNAL[:message_types][:ping]
            Fairlead.publish(CHANNEL, ::ActiveSupport::JSON.encode(type: type, message: Time.now.to_i), PubSub::PROCESS)
          end
        end

        # Rails calls it for every request; its timer is needed once there is a connection that it has to ping.
        def setup_heartbeat_timer(needed: false) = (super() if needed)

        def add_connection(connection)
          Heartbeat.add(connection) || setup_heartbeat_timer(needed: true)
          super
        end
      end
    end
  end
end
