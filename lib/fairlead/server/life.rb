# frozen_string_literal: true

module Fairlead
  class Server
    # A server from a start to the end that follows; the next start is another one.
    #
    #   listening ──begin──▶ serving ──finish──▶ over
    #       └──────────────finish───────────────▲
    class Life
      # Whether somebody has asked for the end.
      attr_accessor :ending

      # Listens.
      def initialize(service)
        @service = service
        @engine = Engine.new(service)
        @over = Thread::Queue.new
        @begun = @ending = false
        @drained = true
        opened = service.open
      ensure
        close unless opened
      end

      # Whether it listens and does not serve yet.
      def listening? = !@begun && !@ending

      # Serves.
      def begin
        @begun = true
        started = @engine.start
        @service.listeners.close
      ensure
        close unless started
      end

      # Ends; see Server#stop. Returns whether all requests have been finished.
      def finish(seconds)
        @drained = false unless over? || !@begun || @engine.drain(seconds)
        @drained
      ensure
        close
      end

      def wait = @over.pop

      def over? = @over.closed?

      # Whether that thread runs requests or blocks of this server.
      def runs?(thread) = @engine.runs?(thread)

      def stats = @begun ? @engine.stats : {}

      private

      def close
        return if over?

        @service.close
        @over.close
      end
    end
    private_constant :Life
  end
end
