# frozen_string_literal: true

require "fairlead/cable/socket"

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Connection::WebSocket (ActionCable::Server::Socket::WebSocket in Rails 8.2), which Rails makes for each
      # request: accepts the upgrade that the server offers, in place of hijacking the socket. With no offer, the request is
      # Rails' own business.
      module Upgrade
        # True if the server offers an upgrade, and that Action Cable server is to accept it.
        def self.native?(env, server) = env["rack.upgrade?"] == :websocket && Sockets.native?(server)

        def initialize(env, event_target, event_loop, protocols: ::ActionCable::INTERNAL[:protocols])
          if env.key?(EventStream::KEY)
            @websocket = env[EventStream::KEY].attach(event_target)
          elsif Upgrade.native?(env, event_target.server)
            @websocket = Socket.for(env, event_target, protocols)
          else
            super
          end
        end

        # The Socket; nil if Rails has hijacked the request.
        def native = (@websocket if @websocket.is_a?(Socket))
      end
    end
  end
end
