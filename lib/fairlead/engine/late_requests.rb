# frozen_string_literal: true

require "io/wait"

module Fairlead
  class Engine
    # Logs the backtrace of each request that runs longer than its timeout. The engine itself has responded to the client by
    # then; this needs Ruby's lock, so it waits while the request keeps the lock. The thread begins with the first timeout.
    class LateRequests
      # Most backtraces that are logged at a time, and seconds until the next ones.
      MOST = 10
      PAUSE = 0.5

      def initialize(service)
        @service = service
        @log = service.log
        @lock = Mutex.new
      end

      # +native+: the Native::Engine.
      def start(native)
        @native = native
        configuration = @service.configuration
        watch if configuration.request_timeout.positive? || configuration.request_timeout_for.any?
      end

      # The callable of the env: sets the timeout of the request of this thread. +seconds+: nil for none.
      def set(seconds)
        watch unless seconds.nil?
        Native.set_request_timeout(seconds)
      end

      def stop
        @lock.synchronize do
          @native = nil
          @thread&.kill
          @thread = nil
        end
      end

      private

      # The request gets its 504 without this thread, too.
      def watch
        return if @thread&.alive? || @lock.owned? # a trap

        @lock.synchronize do
          @thread = new_thread unless @native.nil? || @thread&.alive?
        end
      rescue ThreadError, SystemCallError => e
        @log.late_requests_unwatched(e)
      end

      def new_thread
        signal = @native.deadline_signal
        return if signal.nil?

        Thread.new(IO.for_fd(signal, "r")) { |io| run(io) }.tap { |thread| thread.name = "fairlead late requests" }
      end

      def run(signal)
        loop do
          signal.wait_readable
          signal.read_nonblock(8, exception: false)
          late = Native.late_requests
          late.first(MOST).each { |thread, env| tell(thread, env) }
          @log.late_requests_left_out(late.size - MOST) if late.size > MOST
          sleep PAUSE
        end
      ensure
        signal.close
      end

      def tell(thread, env)
        @log.request_late(env, thread.backtrace || [])
      rescue StandardError
        nil # the application may have changed any value
      end
    end
  end
end
