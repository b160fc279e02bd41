# frozen_string_literal: true

module Fairlead
  # The handlers of clients that move to another process, because their worker is replaced. The extension calls it: in the old process,
  # when everything before has been handled, and in the new one, before anything else is.
  module Handover
    autoload :Fields, "fairlead/realtime/handover/fields"
    autoload :Request, "fairlead/realtime/handover/request"
    autoload :State, "fairlead/realtime/handover/state"

    # The most bytes that a client takes with it.
    LARGEST = 1024 * 1024

    # For a handler's class that makes its handlers itself: take_over(client, state, app). Such a handler may need further turns, before
    # any other event: +resume+ is called until it returns true. In the old process, +handed_over+ is called once the client can move.
    module Resuming; end

    @told = {}
    @lock = Mutex.new

    class << self
      # Returns the bytes for the new process; nil if the client has to stay, and true if it moves without its handler.
      def of(client)
        handler = client.handler
        name = name_of(handler) or return refuse(:handler_nameless)
        state = handler.on_handover(client)
        return (state && native?(client)) || nil if [nil, false, true].include?(state)
        raise TypeError, "#{name}: on_handover returns a String or nil, not #{state.class}" unless state.is_a?(String)

        bytes = State.new(name, state, Request.entries(client.env)).pack
        return refuse(:handover_too_large, name, bytes.bytesize) if bytes.bytesize > LARGEST

        handler.handed_over if handler.class.is_a?(Resuming)
        bytes
      end

      # Makes the handler of a client that has come from another process. +env+: of a request without its Strings; +app+: the Rack
      # application. Returns true, false if the client needs further turns, or nil if nobody takes it over.
      def take_over(client, bytes, env, app)
        state = State.unpack(bytes) or return refuse_format
        client.send(:begin_with_env, Request.add(env, state.entries))
        handler = taken_over(client, state, app) or return
        client.send(:begin_with_handler, handler)
        !handler.class.is_a?(Resuming)
      end

      # Logs that another version has written the state of a client. Returns nil.
      def refuse_format = refuse(:handover_unknown)

      # Runs another turn of a client. Returns true if it was the last one.
      def resume(client) = client.handler.resume

      private

      def taken_over(client, state, app)
        taker = constant(state.name) or return refuse(:handler_missing, state.name)
        return taker.take_over(client, state.text, app) if taker.is_a?(Resuming)
        return refuse(:handler_without_takeover, state.name) unless taker.respond_to?(:on_takeover)

        taker.on_takeover(client, state.text) || nil
      end

      # Nobody would get the messages of a WebSocket.
      def native?(client) = client.protocol == :sse

      # Nil for a class without a name that leads to it. The application may have a method `name`.
      def name_of(handler)
        name = Module.instance_method(:name).bind_call(handler.is_a?(Module) ? handler : handler.class)
        name if name && constant(name)
      end

      def constant(name)
        Object.const_get(name)
      rescue NameError
        nil
      end

      # Logs that once for each handler: there may be thousands of clients. Returns nil.
      def refuse(event, *about)
        is_new = @lock.synchronize { !@told.key?([event, about.first]) && @told[[event, about.first]] = true }
        Background.current.log.public_send(event, *about) if is_new
        nil
      end
    end
  end
end
