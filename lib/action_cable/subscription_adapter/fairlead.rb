# frozen_string_literal: true

require "fairlead"

module ActionCable
  module SubscriptionAdapter
    # Broadcasts through Fairlead, for `adapter: fairlead` in config/cable.yml. Without a server in this process, callbacks are called
    # as by the adapter `async`, and the server of this application gets the broadcasts, too. docs/guides/action_cable.md has more.
    class Fairlead < Base
      prepend ChannelPrefix

      def initialize(server)
        super
        @cable_server = server
        connect
      end

      def broadcast(channel, payload)
        payload = payload.to_s unless payload.is_a?(String) # without a coder, it is any object
        ::Fairlead::Cable.subscribers.deliver_here(channel, payload)
        ::Fairlead::Cable.broadcast(channel, payload)
      end

      def subscribe(channel, callback, success_callback = nil)
        ::Fairlead::Cable.subscribers.add(channel, self, callback)
        success_callback&.call
      end

      def unsubscribe(channel, callback)
        ::Fairlead::Cable.subscribers.remove(channel, self, callback)
      end

      def shutdown
        ::Fairlead::Cable.subscribers.remove_all(self)
      end

      # Called with each message of a channel, in their order.
      def call_back(callback, message)
        callback.call(message)
      rescue StandardError => e
        logger&.error("[ActionCable] a callback for a broadcast failed: #{e.message} (#{e.class})\n#{e.backtrace&.join("\n")}")
      end

      def call_back_later(callback, message)
        pool.post { call_back(callback, message) }
      rescue ::Concurrent::RejectedExecutionError
        nil # this Action Cable server is restarting
      end

      private

      # Since Rails 8.2, the server has an executor.
      def pool = @cable_server.respond_to?(:executor) ? @cable_server.executor : @cable_server.event_loop

      # The server for broadcasts of processes beside it.
      def connect
        return ::Fairlead::Cable.configure(settings) if settings["url"]

        path = ::Fairlead::PublishSocket.find(root, settings["publish_socket"])
        return ::Fairlead::Cable.server = nil unless path
        return if ::Fairlead::Cable.server&.path == path

        ::Fairlead::Cable.server = ::Fairlead::PubSub::RunningServer.new(path, logger: logger)
      end

      def settings = (@cable_server.config.cable || {}).transform_keys(&:to_s)

      def root = defined?(::Rails.root) && ::Rails.root ? ::Rails.root : Dir.pwd
    end
  end
end
