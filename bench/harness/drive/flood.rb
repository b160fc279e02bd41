# frozen_string_literal: true

require_relative "overload"

module Bench
  module Drive
    # A client with far more requests than the server can do (the flooder), beside a client with few (the polite one), each with its
    # own address. The figures are about the polite client; the flooder's are beside them.
    class Flood < Overload
      Party = Struct.new(:address, :factor, :connections, keyword_init: true)
      FLOODER = Party.new(address: "127.0.0.2", factor: 10, connections: 2_000)
      POLITE = Party.new(address: "127.0.0.3", factor: 0.1, connections: 20)

      # Seconds that the flooder is alone before the polite client, and goes on after it.
      MARGIN = 1

      def units
        { many: "useful responses", one: "useful response", beside: "flooder" }
      end

      def clients(_shape)
        "#{POLITE.factor} × capacity from one address, #{FLOODER.factor} × capacity from another one"
      end

      def measure(target, seconds)
        seconds *= @times
        flood = Thread.new { load_from(FLOODER, target, seconds: seconds + (2 * MARGIN)) }
        flood.report_on_exception = false
        sleep MARGIN
        asked = (POLITE.factor * @capacity * seconds).ceil
        # A number of requests, so that none is under way at the end.
        found = load_from(POLITE, target, seconds: seconds, requests: asked)
        found.asked = asked
        found.beside = flood.value
        found
      end

      def summary(found)
        format("%d of %d lost, %d late  p99 %.0f ms  flooder: %.0f/s useful", found.lost, found.asked, found.late, found.good_p99 || 0,
               found.beside.useful_rate)
      end

      private

      def load_from(party, target, **extent)
        found = send_to(target, connections: party.connections, rate: party.factor * @capacity, within: USEFUL, source: party.address, **extent)
        found.tap { found.capacity = @capacity }
      end
    end
  end
end
