# frozen_string_literal: true

require "monitor"

module Fairlead
  module Compat
    class Upgrade
      # What stands between an object of the application and its client. +id+ is a number of this process; +turn+ is held
      # by whoever runs a block of that connection; +names+ are those it is subscribed to.
      Connection = Struct.new(:id, :client, :turn, :names)

      # The objects of this process whose connections are open.
      module Connections
        @sockets = {}
        @last_id = 0
        @lock = Mutex.new

        class << self
          # Enters an object whose connection has opened, and returns what it needs to know of it.
          def add(socket, client)
            @lock.synchronize do
              @sockets[@last_id += 1] = socket
              Connection.new(@last_id, client, Monitor.new, [])
            end
          end

          def remove(connection) = @lock.synchronize { @sockets.delete(connection.id) }
          def [](id) = @lock.synchronize { @sockets[id] }
          def count = @lock.synchronize { @sockets.size }

          # Those that are open now, but for the one with that id.
          def others(id = nil) = @lock.synchronize { @sockets.except(id).values }
        end
      end
    end
  end
end
