# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # For ActionCable::Channel::Base: the streams to which clients may whisper.
      module Channels
        # @return [String, nil] the broadcasting to which the client may whisper
        attr_reader :whisper_stream

        def stream_from(broadcasting, callback = nil, whisper: false, **options, &block)
          whispers_to(broadcasting) if whisper
          hear(String(broadcasting)) unless callback || block
          super(broadcasting, callback, **options, &block)
        end

        def stream_for(model, callback = nil, whisper: false, **options, &block)
          whispers_to(broadcasting_for(model)) if whisper
          super(model, callback, **options, &block)
        end

        # Lets the client whisper to the other clients of a stream.
        #
        # @param broadcasting [String, Symbol]
        def whispers_to(broadcasting)
          @whisper_stream = String(broadcasting)
        end

        def stop_stream_from(broadcasting)
          unhear([String(broadcasting)])
          super
        end

        def stop_all_streams
          unhear(streams.keys)
          super
        end

        # A subscription that cannot be made, or has ended, is no member.
        def subscribe_to_channel
          result = super
          is_made = true
          result
        ensure
          be_absent unless is_made
        end

        def unsubscribe_from_channel
          super
        ensure
          be_absent
        end

        private

        # After its end, the client stays a member for a while.
        def be_absent
          socket = extended_socket
          Presence.leave(socket, identifier) if socket&.alive?
        end

        # With another adapter, the streams are Rails' own, and the Socket does not know them.
        def hear(broadcasting)
          socket = extended_socket
          socket.hear(Sockets.channel(pubsub, broadcasting), identifier) unless socket.nil? || Sockets.own?(pubsub)
        end

        def unhear(broadcastings)
          @whisper_stream = nil if broadcastings.include?(@whisper_stream)
          socket = extended_socket
          return if socket.nil? || Sockets.own?(pubsub)

          broadcastings.each { |broadcasting| socket.unhear(Sockets.channel(pubsub, broadcasting), identifier) }
        end

        def extended_socket
          socket = Cable::Socket.of(connection)
          socket if socket.is_a?(Extended::Socket)
        end
      end
    end
  end
end
