# frozen_string_literal: true

module Iodine
  # What an object has that has become a connection through env["upgrade.websocket"]. Its callbacks, all but the first of
  # them optional: on_message(data), on_open, on_ready (everything has been sent), on_shutdown, on_close.
  #
  # `each` and its kind reach the connections of this process. With several workers those are some of all; what is meant
  # for everybody goes through #publish, or `Iodine.publish`.
  module Websocket
    # For all connections of the process: methods of Iodine::Websocket, and of a class that was handed over.
    module All
      # Yields each connection.
      def each(&block) = Websocket.connections.others.each(&block)

      # Writes to each connection, or to those for which the block is true.
      def each_write(data)
        each { |socket| socket.write(data) if !block_given? || yield(socket) }
        nil
      end

      # Runs the block with the connection of that id, in turn with its callbacks; false when there is none.
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

    # Sends a message: text when the String is UTF-8, else binary. False when the connection is not open.
    def write(data) = client&.write(data) || false

    # Closes it after what has been written.
    def close = client&.close

    def open? = client&.open? || false

    # Whether some of what was written has not been sent yet.
    def has_pending? # rubocop:disable Naming/PredicateName -- as it was
      !client.nil? && client.pending.positive?
    end

    # A number that no other connection of this process has; nil before it is open.
    def conn_id = @fairlead_connection&.id
    alias uuid conn_id

    # The env of the request.
    def env = client&.env
    alias request env

    # Runs the block soon, with this object, in turn with its callbacks; not when the connection is closed by then. Another
    # connection's id may be given.
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

    # Writes to each of the others, or to those for which the block is true.
    def each_write(data)
      each { |socket| socket.write(data) if !block_given? || yield(socket) }
      nil
    end

    # How many connections there are, this one included.
    def count = Websocket.count

    # --- pub/sub, as in 0.4

    # Subscribes to `channel: name` or `pattern: glob`, with `force: :binary` for binary messages. The block gets channel
    # and message; without one they go straight to the client. Returns the id of the subscription, or nil.
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
