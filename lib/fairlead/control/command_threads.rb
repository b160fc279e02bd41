# frozen_string_literal: true

module Fairlead
  module Control
    # Runs commands that may take their time, each on a thread of its own. The results wait here for the thread of the server.
    class CommandThreads
      # Commands that run at once, and commands that may wait for others to end.
      LIMIT = 16
      WAITING = 16

      # +app+: makes the Response to a Request. The block is called when a response is there.
      def initialize(app, log, &ready)
        @app = app
        @log = log
        @ready = ready
        @waiting = []
        @done = Thread::Queue.new
        @threads = {}
      end

      # Returns nil, or a Response if there are too many already.
      def start(connection, request)
        return Response.text(503, "Too many commands at once") if @waiting.size >= WAITING

        @waiting << [connection, request]
        run_waiting
      end

      # Yields the connection and the Response of each command that has ended.
      def each_ended
        until @done.empty?
          connection, response = @done.pop
          @threads.delete(connection)&.join
          yield connection, response
        end
        run_waiting
      end

      # Ends what still runs.
      def kill
        @waiting.clear
        @threads.each_value(&:kill)
      end

      private

      def run_waiting
        while @threads.size < LIMIT && (connection, request = @waiting.shift)
          @threads[connection] = thread(connection, request)
        end
      rescue ThreadError => e
        failed(connection, e)
      end

      def thread(connection, request)
        Server.thread("control command") do
          response = @app.call(request)
        rescue StandardError, ScriptError, NoMemoryError => e
          @log.control_failed(e)
        ensure
          @done << [connection, response || Response.text(500, "The command failed")]
          @ready.call
        end
      end

      def failed(connection, error)
        @log.control_failed(error)
        @done << [connection, Response.text(503, "There are too many threads")]
        @ready.call
        nil
      end
    end
  end
end
