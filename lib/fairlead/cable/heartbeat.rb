# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Server::Base: its own timer makes each connection send a ping, on threads of its own. Native sockets get
      # their pings from the server, without Ruby.
      module Heartbeat
        # The interval of the native pings, in seconds.
        INTERVAL = 3

        # The key of a fiber: true while Rails handles a request for a native socket.
        HANDLING = :fairlead_cable_handling

        # Sends native pings to a connection. Returns false if it is not native, or pings in its own way.
        def self.begin(connection)
          socket = Socket.of(connection) or return false
          return false unless connection.method(:beat).owner == ::ActionCable::Connection::Base
          return false unless ::ActionCable::Server::Connections::BEAT_INTERVAL == INTERVAL

          socket.client.send(:send_cable_pings)
          true
        end

        def call(env)
          return super unless Upgrade.native?(env, self)

          begin
            Thread.current[HANDLING] = true
            super
          ensure
            Thread.current[HANDLING] = nil
          end
        end

        # Rails calls it for every request; its timer is needed once there is a connection that it has to ping.
        def setup_heartbeat_timer = (super unless Thread.current[HANDLING])

        def add_connection(connection)
          Heartbeat.begin(connection) || setup_heartbeat_timer
          TurboStreams.begin(connection)
          super.tap { Socket.of(connection)&.accept }
        end
      end
    end
  end
end
