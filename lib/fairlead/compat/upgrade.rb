# frozen_string_literal: true

require_relative "iodine"
require "monitor"

module Fairlead
  module Compat # :nodoc:
    # The upgrades of iodine 0.2 to 0.5, the predecessor of `rack.upgrade`:
    #
    #   require "fairlead/compat/upgrade"
    #   env["upgrade.websocket"] = Chat if env["upgrade.websocket?"]   # or Chat.new(env); "iodine.websocket" is the same
    #
    # The handler is the connection: its callbacks do not get a client, and it has the methods of Iodine::Websocket. A class is
    # instantiated for each connection. The status of the response is ignored; its header is sent.
    #
    # This is a middleware in front of all applications of the process. Raw TCP (`upgrade.tcp`) is not supported, and
    # `upgrade.tcp?` is never set.
    class Upgrade
      def initialize(app)
        @app = app
      end

      def call(env)
        possible = env["rack.upgrade?"] == :websocket
        env["upgrade.websocket?"] = possible
        _, header, body = response = @app.call(env)
        object = env["upgrade.websocket"] || env["iodine.websocket"]
        return response unless object && possible

        env["rack.upgrade"] = Callbacks.new(object)
        [200, header, body]
      end

      # Links an object of the application to its client. +id+: unique in this process. +turn+: a lock, held while a block of
      # this connection runs. +names+: its subscriptions.
      Connection = Struct.new(:id, :client, :turn, :names)

      # The open connections of this process.
      module Connections
        @sockets = {}
        @last_id = 0
        @lock = Mutex.new

        class << self
          # Adds the object of an open connection. Returns its Connection.
          def add(socket, client)
            @lock.synchronize do
              @sockets[@last_id += 1] = socket
              Connection.new(@last_id, client, Monitor.new, [])
            end
          end

          def remove(connection) = @lock.synchronize { @sockets.delete(connection.id) }
          def [](id) = @lock.synchronize { @sockets[id] }
          def count = @lock.synchronize { @sockets.size }

          # All open connections except the one with that id.
          def others(id = nil) = @lock.synchronize { @sockets.except(id).values }
        end
      end

      # The handler that calls the callbacks of a socket object, in turn with the blocks of its #defer.
      class Callbacks
        # +object+: the object, or its class.
        def initialize(object)
          @socket = object.is_a?(Class) ? instance_of(object) : object.extend(Iodine::Websocket)
        end

        def on_open(client)
          @socket.fairlead_connection = @connection = Connections.add(@socket, client)
          call_back(:on_open)
        end

        def on_message(_client, data) = call_back(:on_message, data)
        def on_drained(_client) = call_back(:on_ready)
        def on_shutdown(_client) = call_back(:on_shutdown)

        def on_close(_client)
          Connections.remove(@connection)
          call_back(:on_close)
        end

        private

        # The methods of the class itself take precedence.
        def instance_of(type)
          type.include(Iodine::Websocket)
          type.extend(Iodine::Websocket::All)
          type.new
        end

        def call_back(event, *arguments)
          @connection.turn.synchronize { @socket.public_send(event, *arguments) } if @socket.respond_to?(event)
        end
      end
    end

    AppLoader.use(Upgrade)
  end
end

module Iodine
  # The methods of an object that has become a connection through env["upgrade.websocket"]. Its callbacks are on_message(data)
  # and optionally on_open, on_ready (everything has been sent), on_shutdown and on_close.
  #
  # `each`, `each_write` and `count` are about the connections of this process only. To reach the connections of all workers,
  # use #publish or `Iodine.publish`.
  module Websocket
    # Methods for all connections of the process: of Iodine::Websocket, and of classes that are used as handlers.
    module All
      # Yields each connection.
      def each(&block) = Websocket.connections.others.each(&block)

      # Writes to each connection, or to the connections for which the block returns true.
      def each_write(data)
        each { |socket| socket.write(data) if !block_given? || yield(socket) }
        nil
      end

      # Runs the block with the connection of that id, in turn with its callbacks. Returns false if there is none.
      def defer(id, &block)
        socket = Websocket.connections[id]
        socket ? socket.defer(&block) : false
      end

      def count = Websocket.connections.count
    end

    extend All

    def self.connections = Fairlead::Compat::Upgrade::Connections

    # --- for Fairlead::Compat::Upgrade::Callbacks

    attr_writer :fairlead_connection

    # --- this connection

    # Sends a message: a UTF-8 String as text, any other as binary. Returns false if the connection is not open.
    def write(data) = client&.write(data) || false

    # Closes the connection after sending what was written.
    def close = client&.close

    def open? = client&.open? || false

    # True if some written bytes have not been sent yet.
    def has_pending? # rubocop:disable Naming/PredicateName -- as it was
      !client.nil? && client.pending.positive?
    end

    # The id of the connection, unique in this process; nil before it is open.
    def conn_id = @fairlead_connection&.id
    alias uuid conn_id

    # The env of the request.
    def env = client&.env
    alias request env

    # Runs the block soon, with this object (or the connection of another id), in turn with its callbacks. The block does not
    # run if the connection is closed by then.
    def defer(id = conn_id, &block)
      raise ArgumentError, "a block is needed" unless block
      return Websocket.defer(id, &block) unless id == conn_id

      connection = @fairlead_connection
      Fairlead.defer { connection.turn.synchronize { block.call(self) if open? } } if connection
      !connection.nil?
    end

    # --- the other connections of this process

    # Yields each of the others.
    def each(&block) = Websocket.connections.others(conn_id).each(&block)

    # Writes to each of the others, or to the others for which the block returns true.
    def each_write(data)
      each { |socket| socket.write(data) if !block_given? || yield(socket) }
      nil
    end

    # The number of connections, including this one.
    def count = Websocket.count

    # --- pub/sub, as in 0.4

    # Subscribes to `channel: name` or `pattern: glob`; `force: :binary` sends binary frames. The block gets channel and message;
    # without a block, messages go straight to the client. Returns the id of the subscription, or nil.
    def subscribe(name = nil, channel: name, pattern: nil, force: nil, engine: nil, &block)
      Fairlead::Compat.missing("subscribe(engine:)", "attach the engine with Iodine::PubSub.attach") if engine
      name = (pattern || channel or raise ArgumentError, "channel: or pattern: is needed").to_s
      options = { match: (:redis if pattern), as: (:binary if force == :binary) }.compact
      return unless client&.subscribe(name, **options, &block)

      @fairlead_connection.names << name
      name
    end

    # The id of the subscription to that channel or pattern, or nil.
    def subscription?(name = nil, channel: name, pattern: nil, **)
      name = (pattern || channel).to_s
      name if @fairlead_connection&.names&.include?(name)
    end
    alias subscribed? subscription?

    # Ends the subscription with that id.
    def unsubscribe(id)
      @fairlead_connection&.names&.delete(id.to_s)
      client&.unsubscribe(id.to_s)
    end

    def publish(...) = Iodine.publish(...)

    private

    def client = @fairlead_connection&.client
  end
end
