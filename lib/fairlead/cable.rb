# frozen_string_literal: true

module Fairlead
  # Action Cable on Fairlead. ActionCable::SubscriptionAdapter::Fairlead connects Rails with this module, which knows nothing of Rails.
  module Cable
    autoload :Place, "fairlead/cable/place"
    autoload :Socket, "fairlead/cable/socket"
    autoload :Sockets, "fairlead/cable/sockets"
    autoload :Subscribers, "fairlead/cable/subscribers"

    @lock = Mutex.new

    class << self
      # Publishes a broadcast: to all processes of the server to which this process belongs, through a broker if one was set, or
      # through the server of this application that runs beside this process.
      #
      # @param channel [String]
      # @param payload [String]
      # @return [Boolean] false if this is known to fail
      def broadcast(channel, payload)
        return Fairlead.publish(channel, payload) if Place.current.server? || !PubSub.default.equal?(PubSub::CLUSTER)

        server ? server.publish(channel, payload) : true
      end

      # The callbacks of this process.
      #
      # @api private
      def subscribers = @subscribers || @lock.synchronize { @subscribers ||= Subscribers.new }

      # The server beside this process: a PubSub::RunningServer, or nil if there is none.
      #
      # @api private
      attr_accessor :server
    end
  end
end
