# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Connection::Subscriptions: rejects subscriptions beyond +max_subscriptions+, because each takes memory.
      module Limit
        def add(data)
          socket = Socket.of(@connection)
          id = data["identifier"]
          return super if socket.nil? || !Limit.reached?(identifiers.size) || !id.is_a?(String) || channel_of(id)

          socket.client.send(:refuse_subscription)
          @connection.transmit(identifier: id, type: ::ActionCable::INTERNAL[:message_types][:rejection])
        end

        def self.reached?(count) = Sockets.max_subscriptions.positive? && count >= Sockets.max_subscriptions
      end
    end
  end
end
