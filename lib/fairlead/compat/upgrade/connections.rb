# frozen_string_literal: true

require "monitor"

module Fairlead
  module Compat
    class Upgrade
      # Links an object of the application to its client. +id+: unique in this process. +turn+: a lock, held while a block of
      # this connection runs. +names+: its subscriptions.
      Connection = Struct.new(:id, :client, :turn, :names)

      # The open connections of this process.
      module Connections
        @sockets = {}
        @last_id = 0
        @lock = Mutex.new

        class << self
          # Adds the object of an open connection. Returns its Connection.
          def add(socket, client)
            @lock.synchronize do
              @sockets[@last_id += 1] = socket
              Connection.new(@last_id, client, Monitor.new, [])
            end
          end

          def remove(connection) = @lock.synchronize { @sockets.delete(connection.id) }
          def [](id) = @lock.synchronize { @sockets[id] }
          def count = @lock.synchronize { @sockets.size }

          # All open connections except the one with that id.
          def others(id = nil) = @lock.synchronize { @sockets.except(id).values }
        end
      end
    end
  end
end
