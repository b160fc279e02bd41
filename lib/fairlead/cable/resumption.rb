# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    # Makes the subscriptions of a client that has come from another process, each in a turn of its own. Channels decide again. The
    # client hears of lost subscriptions only: it knows the welcome, the confirmations and all that channels transmit meanwhile.
    class Resumption
      REJECTION = "reject_subscription"
      NEWS = [REJECTION, "disconnect", "presence"].freeze

      def initialize(socket, moved)
        @socket = socket
        @moved = moved
        @identifiers = moved.identifiers.dup
        @signed = moved.signed.dup
      end

      def finished? = @has_ended

      # Runs a turn.
      def continue
        return connect unless @is_connected
        return subscribe(@identifiers.shift) if @identifiers.any?

        invoke(:end) || give_up
      end

      # True for messages of Rails in a turn that are no news for the client.
      def known?(message)
        type = JSON.parse(message)["type"]
        @is_rejected ||= type == REJECTION
        !NEWS.include?(type)
      rescue JSON::ParserError # another coder
        false
      end

      # --- called by Work

      # As a command of the client.
      def add(identifier)
        @socket.subscribing_again(identifier) do
          command { connection.subscriptions.add("command" => "subscribe", "identifier" => identifier) }
        end
        @has_succeeded = true
      rescue *missing_channel
        @has_succeeded = true
      rescue StandardError => e
        connection.rescue_with_handler(e) # as in Rails
        raise # Work logs it
      end

      def end
        @socket.subscribed_again
        @has_ended = @has_succeeded = true
      end

      private

      def connection = @socket.connection

      def client = @socket.client

      # Rails has connected. Streams that the server has confirmed need no Ruby, if it may still do so.
      def connect
        @is_connected = true
        return give_up unless Sockets::RemoteDisconnects.catch_up(connection, @moved)

        @identifiers.concat(@signed.reject { |identifier| client.send(:resume_signed_stream, identifier) })
      end

      def subscribe(identifier)
        @is_rejected = false
        return give_up unless invoke(:add, identifier)
        return if connection.subscriptions.channel_of(identifier)

        PubSub.forgotten(client.send(:unstream_all_natively, identifier))
        connection.transmit({ identifier: identifier, type: REJECTION }) unless @is_rejected
      end

      # Returns false if the application has raised; Work has logged that.
      def invoke(method, *arguments)
        @has_succeeded = false
        @socket.turn { @socket.work.async_invoke(self, method, *arguments, connection: @socket.target) }
        @has_succeeded
      end

      # Runs the block with the callbacks for commands, which Rails has since 7.1.
      def command(&block)
        connection.class.respond_to?(:_command_callbacks) ? connection.run_callbacks(:command, &block) : yield
      end

      # The client connects again, and gets what Rails does then.
      def give_up = connection.close(reason: "server_restart", reconnect: true)

      # Rails 8.2 raises.
      def missing_channel
        subscriptions = ::ActionCable::Connection::Subscriptions
        subscriptions.const_defined?(:ChannelNotFound) ? [subscriptions::ChannelNotFound] : []
      end
    end
  end
end
