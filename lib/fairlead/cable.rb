# frozen_string_literal: true

module Fairlead
  # Action Cable on Fairlead. ActionCable::SubscriptionAdapter::Fairlead connects Rails with this module, which knows nothing of Rails.
  module Cable
    autoload :Place, "fairlead/cable/place"
    autoload :Socket, "fairlead/cable/socket"
    autoload :Sockets, "fairlead/cable/sockets"
    autoload :Positions, "fairlead/cable/positions"
    autoload :Subscribers, "fairlead/cable/subscribers"
    autoload :TurboStreams, "fairlead/cable/turbo_streams"

    @lock = Mutex.new

    class << self
      # Publishes a broadcast: through a broker if one was set, or else with history, to all processes of the server to which this
      # process belongs, or of the server of this application that runs beside this process.
      #
      # @param channel [String]
      # @param payload [String]
      # @return [Boolean] false if this is known to fail
      def broadcast(channel, payload)
        return Fairlead.publish(channel, payload) unless PubSub.default.equal?(PubSub::CLUSTER)
        return Fairlead.publish(channel, payload, PubSub::HISTORY) if Place.current.server?

        server ? server.publish(channel, payload, history: true) : true
      end

      # A position for a channel of Action Cable, for a page that subscribes to it with the parameter +since+: messages that were
      # broadcast since the beginning of the current request come first.
      #
      # @param broadcasting [String] as for +stream_from+; for a model, +SomeChannel.broadcasting_for(model)+
      # @param env [Hash, nil] of the current request
      # @return [String, nil] nil if this server keeps no messages for it
      def position(broadcasting, env = nil) = Positions.sealed(broadcasting, env)

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
