# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The connection that publishes, on which Redis has replied to a PING.
      class Sender
        # Seconds after its last use within which a connection is used again without a check.
        RECENT = 0.01

        # Seconds; the library takes 0 for no limit.
        SHORTEST = 0.001

        def self.open(options, patience)
          wire = Wire.open(options)
          wire.write(["PING"])
          reply = wire.read(patience)
          return new(wire) if %w[PONG pong].include?(reply) || Wire.refusal?(reply)

          raise(reply.is_a?(StandardError) ? reply : IOError.new("Redis does not answer PING"))
        rescue StandardError
          wire&.close
          raise
        end

        def initialize(wire)
          @wire = wire
          @used = Clock.now
        end

        # Returns nil for each message that Redis has confirmed, and the error for each that it does not permit.
        def publish(batch, patience)
          batch.each { |publication| @wire.write(["PUBLISH", publication.channel, publication.message]) }
          @due = Clock.now + patience
          batch.map { outcome(reply(patience)) }
        end

        # Call this only while no reply is due.
        def usable? = Clock.now - @used <= RECENT || !@wire.ended?

        def close = @wire.close

        private

        def reply(patience)
          @wire.read([@due - Clock.now, SHORTEST].max).tap { @used = Clock.now }
        rescue Broker::Silence
          raise Broker::Silence, "Redis has not replied for #{patience} s"
        end

        def outcome(reply)
          return nil unless reply.is_a?(StandardError)

          Wire.refusal?(reply) ? reply : raise(reply)
        end
      end
    end
  end
end
