# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Channel::Base: streams of native connections with our adapter. A plain stream is delivered without Ruby.
      # Any other stream calls its handler in the client's turn. With other adapters, streams are Rails' own.
      module Streams
        # The methods that a plain stream leaves out: with another version of one of them, it takes Rails' path.
        METHODS = %i[worker_pool_stream_handler stream_handler default_stream_handler stream_decoder stream_transmitter].freeze

        # A message that makes a page load itself again.
        REFRESH = '<turbo-stream action="refresh"></turbo-stream>'

        # The event of each message that Rails transmits. Somebody may wait for it.
        EVENT = "transmit.action_cable"

        class << self
          # True if the messages of a stream without a block need nothing but their envelope.
          def plain?(channel, socket)
            return false if ::ActiveSupport::Notifications.notifier.listening?(EVENT)

            own?(channel, :transmit, ::ActionCable::Channel::Base) &&
              METHODS.all? { |name| own?(channel, name, ::ActionCable::Channel::Streams) } && plain_connection?(channel.connection, socket)
          end

          # True if messages to that connection need nothing but JSON.
          def plain_connection?(connection, socket)
            own?(connection, :transmit, ::ActionCable::Connection::Base) && encodes_json?(socket.target)
          end

          private

          def own?(receiver, name, owner) = receiver.method(name).owner == owner

          # Rails 8.2 encodes in its Server::Socket.
          def encodes_json?(target)
            base = target.is_a?(::ActionCable::Connection::Base) ? ::ActionCable::Connection::Base : ::ActionCable::Server::Socket
            own?(target, :encode, base) && own?(target, :transmit, base) &&
              target.instance_variable_get(:@coder) == ::ActiveSupport::JSON
          end
        end

        def stream_from(broadcasting, callback = nil, coder: nil, &block)
          socket = own_socket or return super
          return if subscription_rejected? || (respond_to?(:unsubscribed?) && unsubscribed?)

          broadcasting = String(broadcasting)
          note_streams
          defer_subscription_confirmation!
          stream = open_stream(socket, broadcasting, callback || block, coder) or return refuse_stream(socket)
          (streams[broadcasting] ||= []).push(stream)
          ensure_confirmation_sent
          logger.info "#{self.class.name} is streaming from #{broadcasting}"
        end

        def stop_stream_from(broadcasting)
          own_socket or return super

          broadcasting = String(broadcasting)
          note_streams
          end_streams(broadcasting, streams.delete(broadcasting) || [])
        end

        def stop_all_streams
          own_socket or return super

          note_streams
          streams.each { |broadcasting, opened| end_streams(broadcasting, opened) }.clear
        end

        private

        # True if +subscribed+ makes the same subscription in another process. The client would not repeat the actions that have changed
        # its streams. Applications override it for other state of their actions.
        def moves? = @streams_of_subscribed.nil? || @streams_of_subscribed == streams_now

        # Called before an action changes the streams.
        def note_streams
          @streams_of_subscribed ||= streams_now if subscription_confirmation_sent?
        end

        def streams_now = streams.transform_values(&:size)

        # The Socket of the connection, if our adapter carries its streams.
        def own_socket
          socket = Socket.of(connection)
          socket if socket && Sockets.own?(pubsub)
        end

        # Returns nil if the client has too many subscriptions, or is closed.
        def open_stream(socket, broadcasting, handler, coder)
          name = Sockets.channel(pubsub, broadcasting)
          is_plain = handler.nil? && (coder.nil? || coder == ::ActiveSupport::JSON)
          return open_plain_stream(socket, broadcasting, name) if is_plain && Streams.plain?(self, socket)

          socket.streams.handled(name, worker_pool_stream_handler(broadcasting, handler, coder: coder))
        end

        # The client may have the position of a page.
        def open_plain_stream(socket, broadcasting, name)
          page = params["since"]
          stream, complete = socket.streams.plain(name, identifier, page: (page if page.is_a?(String)))
          messages_lost(broadcasting) unless complete || stream.nil?
          stream
        end

        # Messages since the position of the page are not kept any more. A page with Turbo Streams loads itself again.
        def messages_lost(broadcasting)
          logger.info "#{self.class.name} cannot send all messages of #{broadcasting} since the position of the page"
          transmit(REFRESH) if defined?(::Turbo::StreamsChannel) && is_a?(::Turbo::StreamsChannel)
        end

        # Rejects the subscription. Rails does it at the end of +subscribed+; this may be later.
        def refuse_stream(socket)
          return unless socket.alive? && socket.client.open? # the turn that closes it may be next

          logger.error "#{self.class.name} cannot stream: the client has too many subscriptions (max_subscriptions)"
          reject
          reject_subscription if subscription_confirmation_sent?
        end

        def end_streams(broadcasting, opened)
          opened.each(&:close)
          logger.info "#{self.class.name} stopped streaming from #{broadcasting}" if opened.any?
        end
      end
    end
  end
end
