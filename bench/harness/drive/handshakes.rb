# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # A new TLS connection for every request. Counts handshakes, and measures their latency.
    class Handshakes < Requests
      # Required share of resumed sessions, if any are expected; a client's first handshake has nothing to resume.
      LEAST_RESUMED = 0.95

      def units
        { many: "handshakes", one: "handshake" }
      end

      private

      def load(target, seconds, _each)
        wanted = target.tls
        target.load_tool.measure(target.url, connections: target.connections, seconds: seconds, keep_alive: false, tls: wanted).tap do |found|
          problem = wanted.problem(found.tls) || resumption_problem(wanted, found.tls) and raise(Error, problem)

          found.latency = Load.curve(found.tls["latency_ms"][wanted.resume ? "resumed" : "full"])
          found.corrected = nil
        end
      end

      def resumption_problem(wanted, found)
        share = found["resumed"].fdiv([found["handshakes"], 1].max)
        return format("%d %% of the sessions were resumed", share * 100) if wanted.resume ? share < LEAST_RESUMED : share.positive?
      end
    end
  end
end
