# frozen_string_literal: true

module Fairlead
  module Cable
    # Streams of turbo-rails. The server confirms a subscription to Turbo::StreamsChannel itself, without Ruby, if the name of the
    # stream has a valid signature, and nothing of the application takes part in such a subscription. Pages carry a position.
    module TurboStreams
      CHANNEL = "Turbo::StreamsChannel"

      # Events that somebody may wait for, and that a native subscription does not have.
      EVENTS = %w[transmit.action_cable transmit_subscription_confirmation.action_cable].freeze

      # Methods of a channel that a native subscription leaves out.
      METHODS = %i[subscribe_to_channel unsubscribe_from_channel unsubscribed stop_all_streams transmit transmit_subscription_confirmation].freeze

      # For Turbo::StreamsHelper.
      module Helper
        # The position is left out in a cached fragment, which many pages share.
        def turbo_stream_from(*streamables, **attributes)
          return super if respond_to?(:caching?) && caching?

          since = TurboStreams.position(streamables, self)
          since ? super(*streamables, **attributes, data: { since: since, **(attributes[:data] || {}) }) : super
        end
      end

      class << self
        # Has pages carry positions, if the application has loaded turbo-rails.
        def install
          return unless defined?(::Turbo::Engine) && defined?(::ActionView) && defined?(::Turbo::StreamsHelper)

          ::Turbo::StreamsHelper.prepend(Helper)
        end

        # Has the server confirm the streams of a connection that is about to be accepted. Returns false if Rails has to do it: other
        # transports than WebSockets with Rails' protocol have frames of their own.
        def begin(connection)
          socket = Socket.of(connection)
          return false unless socket.instance_of?(Socket) && plain?(connection, socket)

          secret = secret() or return false
          socket.client.send(:confirm_signed_streams, CHANNEL, Sockets.channel(connection.pubsub, ""), secret)
          true
        end

        # The position for a page of +view+; nil without a request that this server serves.
        def position(streamables, view)
          env = view.respond_to?(:request) && view.request&.env
          return unless env && env[Positions::KEY]

          Positions.sealed(::Turbo::StreamsChannel.send(:stream_name_from, streamables), env)
        end

        private

        # True if a subscription to a stream does nothing but deliver messages.
        def plain?(connection, socket)
          return false unless defined?(::Turbo::StreamsChannel) && Sockets.own?(connection.pubsub) && Sockets.without_broker?
          return false if EVENTS.any? { |event| ::ActiveSupport::Notifications.notifier.listening?(event) }

          plain_channel?(::Turbo::StreamsChannel) && plain_commands?(connection) && Sockets::Streams.plain_connection?(connection, socket)
        end

        # True if turbo-rails has made the channel, and the application has neither changed it nor added callbacks.
        def plain_channel?(channel)
          base = ::ActionCable::Channel::Base
          channel.superclass.equal?(base) && channel.ancestors.first.equal?(channel) &&
            original?(channel.instance_method(:subscribed)) && original?(channel.method(:verified_stream_name)) &&
            METHODS.all? { |name| channel.instance_method(name).owner == base.instance_method(name).owner } &&
            %i[_subscribe_callbacks _unsubscribe_callbacks].all? { |name| same_callbacks?(channel, base, name) } &&
            channel.periodic_timers.empty?
        end

        def original?(method) = method.source_location&.first.to_s.start_with?("#{::Turbo::Engine.root}/")

        def same_callbacks?(channel, base, name) = channel.public_send(name).map(&:filter) == base.public_send(name).map(&:filter)

        # True if no callback of the application runs for a command.
        def plain_commands?(connection)
          type = ::ActionCable::Connection::Base
          %i[dispatch_websocket_message handle_channel_command].all? do |name|
            !connection.respond_to?(name, true) || connection.method(name).owner == type
          end && (!connection.class.respond_to?(:_command_callbacks) || connection.class._command_callbacks.empty?)
        end

        # The key of the names' signatures; nil if they are made in another way.
        def secret
          verifier = ::Turbo.signed_stream_verifier
          return @secret if verifier.equal?(@verifier)

          key = ::Turbo.signed_stream_verifier_key
          data, signature = verifier.generate("probe").split("--")
          digest = OpenSSL::HMAC.hexdigest("SHA256", key, data)
          usual = signature == digest && data.unpack1("m0") == '"probe"'
          @verifier = verifier
          @secret = (key if usual)
        end
      end
    end
  end
end
