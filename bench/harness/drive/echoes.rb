# frozen_string_literal: true

module Bench
  module Drive
    # WebSocket echoes, one message at a time on each connection.
    class Echoes
      def initialize(size:)
        @size = size
      end

      def units
        { many: "echoes", one: "echo" }
      end

      def speaks?(dialect, _shape)
        !dialect.echo.nil?
      end

      def warm_up(target, seconds)
        load(target, seconds)
      end

      def measure(target, seconds)
        found = load(target, seconds)
        requests, latency = found.values_at("requests", "latency_ms")
        Measurement.new(
          rate: requests["per_second"], requests: requests["answered"], seconds: found["seconds"],
          errors: found["errors"].reject { |_, count| count.zero? }, bytes: found["bytes"]["read"],
          latency: Load.curve(latency["raw"]), corrected: Load.curve(latency["corrected"]),
          per_connection: found["connections"].map { |connection| connection["answered"] }
        )
      end

      def problem(found)
        "no message was echoed: #{found.errors}" if found.requests.zero?
      end

      def summary(found)
        format("%.0f/s  p99 %.2f ms", found.rate, found.percentile(99))
      end

      private

      def load(target, seconds)
        target.real_time(target.websocket(target.dialect.echo), "-d", seconds.to_s, "--size", @size.to_s)
      end
    end
  end
end
