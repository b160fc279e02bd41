# frozen_string_literal: true

require "fairlead/cable/signed_streams"

module Fairlead
  module Cable
    module Extended
      # For ActionCable::Connection::Subscriptions: the channel `$pubsub`, and the commands of AnyCable's sub-protocol.
      module Commands
        def execute_command(data)
          socket = Cable::Socket.of(@connection)
          return super unless socket.is_a?(Extended::Socket)

          case data["command"]
          when "subscribe" then socket.subscribing { subscribe(socket, data) { super } }
          when "unsubscribe" then unsubscribe(socket, data) { super }
          when "pong" then nil # a sign of life, which the WebSocket's own pings show, too
          when "history", "whisper", "presence", "join", "leave" then extended(socket, data)
          else super
          end
        end

        def add(data)
          channel = SignedStreams.channel(@connection, data["identifier"])
          return super if channel.nil? || @subscriptions.key?(channel.identifier)

          @subscriptions[channel.identifier] = channel
          channel.subscribe_to_channel
        end

        # The channel of a subscription.
        def channel_of(identifier) = @subscriptions[identifier]

        # Removes a subscription that could not be made.
        def drop(identifier)
          channel = @subscriptions.delete(identifier)
          channel&.unsubscribe_from_channel
        rescue StandardError => e
          @connection.logger.error("Could not remove the subscription #{identifier} [#{e.class} - #{e.message}]")
        end

        private

        def subscribe(socket, data, &block)
          identifier = data["identifier"]
          if @subscriptions.key?(identifier)
            return socket.restored?(identifier) ? confirm(socket, data) : yield
          end

          request = HistoryRequest.of(data["history"])
          request ? socket.hold(identifier, nil, request, &block) : yield
          return unless @subscriptions.key?(identifier) # rejected

          socket.catch_up(identifier, request) if request
          socket.note("add", identifier)
          join(socket, data)
        end

        def confirm(socket, data)
          identifier = data["identifier"]
          socket.send_json(identifier: identifier, type: ::ActionCable::INTERNAL[:message_types][:confirmation])
          socket.catch_up(identifier, HistoryRequest.of(data["history"]))
          join(socket, data)
        end

        def join(socket, data)
          extended(socket, data.merge("command" => "join")) if data["presence"]
        end

        def unsubscribe(socket, data)
          identifier = data["identifier"]
          subscribed = @subscriptions.key?(identifier)
          yield
          socket.note("remove", identifier) if subscribed && !@subscriptions.key?(identifier)
        end

        # As in Rails, an error is logged and the connection stays.
        def extended(socket, data)
          channel = @subscriptions[data["identifier"]] or raise(ArgumentError, "Unable to find subscription with identifier: #{data["identifier"]}")
          run(socket, channel, data)
        rescue StandardError => e
          @connection.rescue_with_handler(e)
          @connection.logger.error("Could not execute command from (#{data.inspect}) [#{e.class} - #{e.message}]")
        end

        def run(socket, channel, data)
          identifier = channel.identifier
          case data["command"]
          when "history" then socket.catch_up(identifier, HistoryRequest.of(data["history"]))
          when "whisper" then whisper(socket, channel, data["data"])
          when "join" then Presence.shared!(channel) || Presence.join(socket, channel, data["presence"])
          when "leave" then Presence.shared!(channel) || Presence.leave(socket, identifier)
          when "presence" then Presence.report(socket, channel)
          end
        end

        def whisper(socket, channel, message)
          stream = channel.whisper_stream or raise(ArgumentError, "clients of #{channel.class} may not whisper; use stream_from(…, whisper: true)")
          Transients.whisper(Sockets.channel(channel.pubsub, stream), message, socket.sid)
        end
      end
    end
  end
end
