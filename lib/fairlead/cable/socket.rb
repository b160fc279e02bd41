# frozen_string_literal: true

require_relative "client_streams"
require_relative "moving"
require_relative "work"

module Fairlead
  module Cable
    # The native WebSocket of one Action Cable connection: the handler of a Fairlead::Client, and the transport that Rails expects
    # behind its Connection::WebSocket. Each event is a turn on a request thread; the events of one client run one at a time, in
    # order.
    class Socket
      include Moving

      # Rails gets binary messages as an Array of bytes, and does not accept them.
      BINARY_MESSAGE = [].freeze

      # Close codes: RFC 6455 section 7.4.1.
      NORMAL = 1000
      REFUSED = 1011
      NO_STATUS = 1005

      # Classes for further sub-protocols: name => subclass of Socket.
      @protocols = {}

      class << self
        # Serves a sub-protocol besides Rails' own ones with a subclass of Socket.
        def add_protocol(name, socket_class) = Socket.protocols[name] = socket_class

        # @api private
        attr_reader :protocols

        # The socket for a request. Chooses the first offered protocol that the server knows, as Rails does.
        def for(env, target, rails_protocols)
          offered = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(/ *, */)
          protocol = offered.find { |name| rails_protocols.include?(name) || protocols.key?(name) }
          protocols.fetch(protocol, Socket).new(env, target, protocol)
        end

        # The socket of an ActionCable::Connection::Base; nil if it is not native.
        def of(connection)
          # Rails 8.2 has a Server::Socket between them.
          target = connection.instance_variable_get(:@socket) || connection
          web_socket = target.instance_variable_get(:@websocket)
          web_socket.native if web_socket.respond_to?(:native)
        end
      end

      # The negotiated sub-protocol, or nil; the Fairlead::Client, once it is open; the Work of its jobs.
      attr_reader :protocol, :client, :work

      # The object that gets the events: an ActionCable::Connection::Base, or an ActionCable::Server::Socket in Rails 8.2.
      attr_reader :target

      def initialize(env, target, protocol)
        @env = env
        @target = target
        @protocol = protocol
        @alive = false
        @work = target.instance_variable_set(:@worker_pool, Work.new(target.server, self))
        share_env
      end

      # --- for Rails

      # Middleware leaves a response with 101 as it is. The server sends the fields.
      def rack_response
        @env["rack.upgrade"] = self
        [101, protocol ? { "sec-websocket-protocol" => protocol } : {}, []]
      end

      def alive? = @alive

      # Sends text; may be called from any thread. Returns false if the client is closed or reads too slowly.
      def transmit(message)
        return false unless @alive
        return true if known?(message)

        message = message.to_s
        message = message.dup.force_encoding(Encoding::UTF_8) unless message.encoding == Encoding::UTF_8
        @client.write(message)
      end

      # Closes the connection after sending everything that was transmitted.
      def close(code = nil, reason = nil)
        @alive = false
        @client&.close(code || NORMAL, reason || "")
      end

      # --- the callbacks of the client

      def on_open(client)
        @client = client
        @alive = true
        turn { @target.on_open }
      ensure # the application may kill this thread
        close(REFUSED, "the application has not accepted the connection") if alive? && !accepted?
      end

      # Called once Rails has accepted the connection.
      def accept = @accepted = true

      def accepted? = @accepted || false

      def on_message(_client, message)
        turn { @target.on_message(message.encoding == Encoding::BINARY ? BINARY_MESSAGE : message) }
      end

      def on_close(_client)
        @alive = false
        turn { @target.on_close("", NO_STATUS) } unless moved
      end

      # The ActionCable::Connection::Base: Rails 8.2 has a Server::Socket before it.
      def connection = target.is_a?(::ActionCable::Connection::Base) ? target : target.connection

      # --- for Streams

      # The streams of this client.
      def streams = @streams ||= ClientStreams.new(self)

      # Delivers the messages of a channel to the subscription +identifier+; see Client#stream.
      def stream(channel, identifier, page: nil) = @client.stream(channel, identifier, page: page)

      # The client keeps its streams while it moves.
      def unstream(channel, identifier) = moved || @client.unstream(channel, identifier)

      # Ends the subscription of a ClientStreams.
      def unsubscribe(channel) = moved || @client.unsubscribe(channel)

      # --- for Work

      # Runs the block in the client's turn. The first job that it gives to Work runs at once.
      def turn
        @running = @next = Thread.current
        yield
      ensure
        @running = @next = nil
      end

      # True, once, if the current turn has called Rails for the job that follows.
      def take_turn?
        return false unless Thread.current.equal?(@next)

        @next = nil
        true
      end

      # Runs +job+ in the client's turn, after the events that wait already. After the end of the client, only its own callbacks
      # have jobs left.
      def later(job)
        @client&.defer(&job) || (Thread.current.equal?(@running) && Fairlead.defer(&job))
      end

      private

      # Rails makes the request of each connection from a copy of the env, with the settings of the application. If the env has
      # them already, the copy would only take memory: as much as the rest of the connection.
      def share_env
        application = ::Rails.application if defined?(::Rails.application)
        return unless application&.env_config&.each_key&.all? { |key| @env.key?(key) }

        @target.instance_variable_set(:@request, ::ActionDispatch::Request.new(@env))
      end
    end
  end
end
