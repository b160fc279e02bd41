# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    # Who is there, for clients with AnyCable's sub-protocol. Include it in a channel:
    #
    #   class ChatChannel < ApplicationCable::Channel
    #     include Fairlead::Cable::Presence
    #
    #     def subscribed
    #       stream_from "chat"
    #       join_presence(id: current_user.id, info: { name: current_user.name })
    #     end
    #   end
    module Presence
      autoload :Exchange, "fairlead/cable/presence/exchange"
      autoload :Members, "fairlead/cable/presence/members"

      # The most bytes of a member's info, as JSON, and of its id.
      LARGEST_INFO = 4096
      LARGEST_ID = 256

      # The most levels of Arrays and Hashes in an info. Messages add some.
      DEEPEST_INFO = 50

      # The most subscriptions with which one client can be a member.
      MOST = 100

      # Seconds between two lines in the log about refused members.
      QUIET = 60

      # @return [String, nil] the stream with the members that the client may see
      attr_reader :presence_stream

      # @return [Boolean] true if the client may join and leave them by itself, with any id
      def presence_shared? = @presence_shared || false

      # Adds the client to the members of a stream. The clients of this stream get the event `join` if the member is new.
      #
      # @param stream [String, Symbol, nil] by default the first one of this channel
      # @param id [#to_s] of the member, who may have several clients
      # @param info [Object] anything that JSON can express
      def join_presence(stream = nil, id: user_presence_id, info: user_presence_info)
        @presence_stream = String(stream || streams.keys.first || raise(ArgumentError, "no stream; use join_presence(stream, …)"))
        socket = Cable::Socket.of(connection)
        Presence.join(socket, self, { "id" => id.to_s, "info" => info }) if socket.is_a?(Extended::Socket)
      end

      # Removes the client from them.
      def leave_presence
        socket = Cable::Socket.of(connection)
        Presence.leave(socket, identifier) if socket.is_a?(Extended::Socket)
      end

      # Lets the client see the members of a stream and join them by itself, with any id.
      #
      # @param stream [String, Symbol]
      def shares_presence(stream)
        @presence_shared = true
        @presence_stream = String(stream)
      end

      private

      def user_presence_id = connection.connection_identifier

      def user_presence_info = nil

      class << self
        # @api private
        def join(socket, channel, presence)
          id, info = presence.values_at("id", "info") if presence.is_a?(Hash)
          raise ArgumentError, "a presence needs an id" unless (id.is_a?(String) || id.is_a?(Numeric)) && id.to_s.bytesize.between?(1, LARGEST_ID)

          text = JSON.generate(info, max_nesting: DEEPEST_INFO)
          raise ArgumentError, "the info of a presence has more than #{LARGEST_INFO} bytes" if text.bytesize > LARGEST_INFO

          stream = stream(channel)
          return refuse(channel, "there are too many members") if Exchange.current.full?
          return refuse(channel, "a client can be a member with #{MOST} subscriptions") if socket.presences >= MOST
          return unless socket.alive?

          socket.present_in(stream, channel.identifier)
          # The subscription may be rejected before.
          socket.afterwards { tell(socket, stream, id.to_s, info) if socket.present_in?(stream, channel.identifier) }
        end

        # For commands of a client.
        #
        # @api private
        def shared!(channel)
          return if channel.is_a?(Presence) && channel.presence_shared?

          raise ArgumentError, "clients of #{channel.class} may not join or leave; use shares_presence"
        end

        # @api private
        def leave(socket, identifier)
          stream = socket.absent_from(identifier)
          Exchange.current.leave(socket.sid, stream) if stream
        end

        # Sends the members to a client.
        #
        # @api private
        def report(socket, channel)
          stream = stream(channel)
          wait = Exchange.current.wait
          return Fairlead.run_after(wait) { send_members(socket, channel, stream) } if wait.positive?

          send_members(socket, channel, stream)
        end

        private

        def tell(socket, stream, id, info) = Exchange.current.join(socket.sid, stream, id, info, socket.restoring?)

        # The subscription does not depend on it.
        def refuse(channel, reason)
          now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
          @refused ||= {}
          return if @refused[reason] && now - @refused[reason] < QUIET

          @refused[reason] = now
          channel.connection.logger.error("#{channel.class} cannot join the members of #{channel.presence_stream}: #{reason}")
        end

        def send_members(socket, channel, stream)
          members = Exchange.current.of(stream)
          records = members.map { |id, info| { id: id, info: info }.compact }
          socket.send_json(type: "presence", identifier: channel.identifier, message: { type: "info", total: records.size, records: records })
        end

        # The channel of the server for the stream with the members.
        def stream(channel)
          name = channel.presence_stream if channel.is_a?(Presence)
          raise ArgumentError, "#{channel.class} shares no presence; use join_presence or shares_presence" unless name

          Sockets.channel(channel.pubsub, name)
        end
      end
    end
  end
end
