# frozen_string_literal: true

module Fairlead
  class Server
    # One run of a server, from a start to the next stop; the next start begins another life.
    #
    #   listening ──begin──▶ serving ──finish──▶ over
    #       └──────────────finish───────────────▲
    class Life
      # True if a thread has asked for the end.
      attr_accessor :ending

      # Listens.
      def initialize(service)
        @pid = Process.pid
        @service = service
        @engine = Engine.new(service)
        @over = Thread::Queue.new
        @begun = @ending = false
        @drained = true
        @endings = 0
        @lock = Mutex.new
        @beginning = Mutex.new
        opened = service.open
        service.announce
      ensure
        close unless opened
      end

      # True if it listens and does not serve yet.
      def listening? = !@begun && !@ending

      # True if this process has begun it. A process that was forked since then has copies of everything, and must not use them:
      # it shares the sockets.
      def here? = @pid == Process.pid

      # Serves. A process that was forked after it began to listen may do that.
      def begin
        @beginning.synchronize do
          raise Error, "the server was stopped before it served" if @ending

          @pid = Process.pid
          @begun = true
          started = @engine.start
          @service.tls.start
          @ending_listeners = @service.listeners.ending
          @service.listeners.close
        ensure
          close unless started
        end
      end

      # Ends; see Server#stop. Several threads may ask for it, each with its time: the shortest time counts, and all learn
      # whether all requests have been finished.
      def finish(seconds)
        @lock.synchronize { @endings += 1 }
        @beginning.synchronize { nil } # a start that has begun is not disturbed
        drained = over? || !@begun || @engine.drain(seconds, ending: @ending_listeners)
        ended(drained)
        wait
        @drained
      ensure
        ended(false) if drained.nil?
      end

      def wait = @over.pop

      def over? = @over.closed?

      # True if the current thread runs requests or blocks of this server.
      def inside? = @beginning.owned? || @engine.runs?(Thread.current)

      def stats = @begun ? @engine.stats : {}

      private

      # The last thread that has asked for the end closes everything that is left.
      def ended(drained)
        @lock.synchronize do
          @drained &&= drained
          close if (@endings -= 1).zero?
        end
      end

      def close
        return if over?

        @service.tls&.stop
        @service.close
        @over.close
      end
    end
    private_constant :Life
  end
end
