# frozen_string_literal: true

require "json"
require "fairlead/cable/socket"

module Fairlead
  module Cable
    # An event stream as the transport of an Action Cable connection with one subscription. Rails admits the connection and the
    # subscription before there is a response, so that a client without access gets 401.
    class EventStream < Socket
      # In the env: the EventStream of the connection that Rails makes.
      KEY = "fairlead.event_stream"

      # For `disconnect` without `reconnect`: EventSource has no way to give up. Milliseconds.
      NEVER = 31_536_000_000

      # Sends a message of the protocol.
      def self.send_control(client, message)
        content = JSON.parse(message)
        client.write(message, event: content["type"], **(content["reconnect"] == false ? { retry: NEVER } : {}))
      end

      # The client before the response.
      class NoClient
        def send_cable_pings = nil
        def refuse_subscription = nil
        def defer = nil
        def unsubscribe(_channel) = nil
        def close(*) = nil
      end

      # +since+: a position, a time, or nil.
      def initialize(env, raw:, since:) # rubocop:disable Lint/MissingSuper -- #attach calls it
        @env = env
        @raw = raw
        @since = since
        @pending = []
        @channels = {} # channel => the position from which on the client needs its messages, and the sealed one of its page
        @handlers = []
      end

      # Called when Rails makes the connection.
      def attach(target)
        method(:initialize).super_method.call(@env, target, nil)
        @client = NoClient.new
        @alive = true
        self
      end

      # Makes a connection and its subscription. Returns false if Rails rejects one of them, or the application raises.
      def admitted?(server, identifier)
        connect(server)
        @alive &&= @accepted # an exception in `connect` must not let anybody in
        turn { work.invoke(self, :make_subscription, identifier, connection: target) } if @alive
        admitted = @alive && @is_subscribed
      ensure
        on_close(nil) if @target && !admitted
      end

      # In place of Rails' command, which keeps the subscription of a channel that raises.
      def make_subscription(identifier)
        connection.subscriptions.add("command" => "subscribe", "identifier" => identifier)
        @is_subscribed = connection.subscriptions.identifiers.include?(identifier)
      rescue StandardError => e
        connection.rescue_with_handler(e)
        raise # Work logs it
      end

      # For `rack.response_finished`: the application may have raised, or responded in another way, since it had admitted the client.
      def finish(env, status, _headers, error)
        on_close(nil) unless error.nil? && (200...300).cover?(status.to_i) && env["rack.upgrade"].equal?(self)
      end

      def transmit(message)
        return false unless @alive

        @opened ? send_event(message) : @pending << message
      end

      def close(_code = nil, _reason = nil)
        @alive = false
        @client.close if @opened
      end

      # --- the callbacks of the client

      def on_open(client)
        @client = client
        @opened = true
        @pending.each { |message| send_event(message) }
        complete = @channels.map { |channel, (position, page)| subscribe(channel, position, page) }.all?
        @handlers.each { |channel, handler| streams.handled(channel, handler) }
        send_event(JSON.generate(type: "reject_history")) unless complete
        client.close unless @alive
      end

      def on_message(_client, _message) = nil

      # --- for a client from another process: the application has admitted it again

      def begin_again(client, moved)
        @client = client
        client.send(:begin_with_handler, self)
        @opened = true
        @channels.each { |channel, (position, _)| position ? client.subscribe(channel, since: position) : client.subscribe(channel) }
        @handlers.each { |channel, handler| streams.handled(channel, handler) }
        close if @alive && !Sockets::RemoteDisconnects.catch_up(connection, moved)
        client.close unless @alive
      end

      # --- for Streams

      def streams = @opened ? super : self

      # The streams of a connection without a response; see ClientStreams.
      def plain(channel, identifier, page: nil)
        @channels[channel] ||= [Extended.position, page]
        [ClientStreams::Plain.new(self, channel, identifier), 0]
      end

      def handled(channel, handler)
        @handlers << [channel, handler]
        ClientStreams::Plain.new(self, channel, nil)
      end

      def stream(channel, _identifier, **)
        subscribed = client.subscribe(channel, since: Extended.position)
        subscribed ? 0 : subscribed
      end

      def unstream(channel, _identifier)
        return unsubscribe(channel) if @opened

        @channels.delete(channel)
        @handlers.reject! { |name,| name == channel }
      end

      private

      # The origin is not checked: without CORS, browsers do not show a response to other origins.
      def connect(server)
        @env[KEY] = self
        connection = server.config.connection_class.call
        ::ActionCable::Connection.const_defined?(:WebSocket, false) ? connection.new(server, @env) : ::ActionCable::Server::Socket.new(server, @env)
        turn { target.on_open }
      end

      # Returns false if messages are lost. An event stream has one last event id, so it continues one channel.
      def subscribe(channel, position, page)
        return client.subscribe(channel) && @since.nil? unless position && channel == @channels.first.first

        wanted, is_complete = wanted(channel, page)
        client.subscribe(channel, since: wanted || position) && is_complete != false
      end

      # The position that the client asks for, by the last event, a time, or the sealed position of its page; and false if messages since
      # then are lost. Nil if it asks for none.
      def wanted(channel, page)
        case @since
        when String then @since
        when Float then Extended::HistoryRequest.new({}, @since).position(channel)
        else client.send(:position_of_page, channel, page).then { |found| [found || nil, found != false] } if page
        end
      end

      # Messages of a subscription are sent without their envelope.
      def send_event(message)
        content = JSON.parse(message)
        type = content["type"]
        return client.write(JSON.generate(content["message"])) unless type
        return true if @raw

        EventStream.send_control(client, message)
      end
    end
  end
end
