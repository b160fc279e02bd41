# frozen_string_literal: true

module Fairlead
  module Control
    # Whether the main loop of the server still turns: asks it for a sign of life, and knows how long it owes one.
    class Pulse
      # +server+: has #ping, which calls its block in the main loop.
      def initialize(server)
        @server = server
        @asked_at = nil
      end

      # Asks again, unless the last question is open; returns for how many seconds that has been so.
      def check
        asked_at = @asked_at
        return now - asked_at if asked_at

        @asked_at = now
        @server.ping { @asked_at = nil }
        0
      end

      # For how many seconds the loop owes a sign.
      def silent_for
        asked_at = @asked_at
        asked_at ? now - asked_at : 0
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
