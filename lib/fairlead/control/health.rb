# frozen_string_literal: true

module Fairlead
  module Control
    # The answers to those who decide whether the server gets requests (/ready) and whether it must be replaced (/live). They
    # say nothing that needs a token.
    class Health
      PATHS = %w[/ready /live].freeze

      # How long the main loop may owe a sign of life, in seconds.
      SILENCE = 10

      # +server+: has #status. +pulse+: its Pulse.
      def initialize(server, pulse)
        @server = server
        @pulse = pulse
      end

      # A Response; for another path one that says so.
      def call(request)
        case request.path
        when "/ready" then verdict(ready?, @server.status[:state])
        when "/live" then verdict(live?, live? ? :live : :hung)
        else Response.text(404, "Unsupported action")
        end
      end

      private

      # While new workers take the place of the old ones, these serve.
      def ready?
        status = @server.status
        return false unless %i[ready restarting].include?(status[:state])

        status[:workers].zero? || status[:children].any? { |child| child[:booted] && !child[:ending] }
      end

      # While the only process loads the application, its main loop does not turn yet.
      def live? = @server.status[:state] == :starting || @pulse.silent_for < SILENCE

      def verdict(good, word) = Response.json({ status: word }, status: good ? 200 : 503)
    end
  end
end
