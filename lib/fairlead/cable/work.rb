# frozen_string_literal: true

module Fairlead
  module Cable
    # The worker pool of a native connection: runs its jobs in the client's turns, on request threads, with the callbacks of
    # Rails' pool (ActionCable::Server::Worker). The threads of that pool stay unused.
    class Work
      attr_reader :socket

      def initialize(server, socket)
        @server = server
        @socket = socket
      end

      def async_invoke(receiver, method, *args, connection: receiver, &block)
        if @socket.take_turn?
          invoke(receiver, method, *args, connection: connection, &block)
        else
          @socket.later(-> { invoke(receiver, method, *args, connection: connection, &block) })
        end
      end

      def async_exec(receiver, *args, connection:, &block)
        async_invoke(receiver, :instance_exec, *args, connection: connection, &block)
      end

      def invoke(...) = rails.invoke(...)

      def work(...) = rails.work(...)

      def executor = rails.executor

      def halt = rails.halt

      def stopping? = rails.stopping?

      private

      # A restart of the Action Cable server replaces it.
      def rails = @server.worker_pool
    end
  end
end
