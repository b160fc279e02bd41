# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # Requests at a fixed rate through a router (bench/router), which forwards each to one of two identical servers. The
    # shape's mix chooses the router's connections to them: kept open, or a new one for each request.
    class Routed < Requests
      KEPT = "kept connections to the servers"
      NEW = "a new connection to a server for each request"
      # Number of clients: enough that no client has to wait for a response before its next request is due.
      CLIENTS = 100

      # rate: requests per second; times: factor for the duration of the measurement.
      def initialize(answer_bytes:, rate:, times: 1)
        super(answer_bytes: answer_bytes)
        @rate = rate
        @times = times
      end

      def missing
        "Go 1.24 or newer is not installed" unless Binaries.router
      end

      def clients(_shape)
        "#{@rate} requests/s on #{CLIENTS} connections to the router"
      end

      def measure(target, seconds)
        super(target, seconds * @times)
      end

      def summary(found)
        format("p50 %.0f  p95 %.0f  p99 %.0f ms", *[50, 95, 99].map { |percent| found.corrected_percentile(percent) })
      end

      private

      def load(target, seconds, _each)
        target.running.with_another do |other|
          Router.start([target.running.port, other.port], http2: target.http2?, keep_alive: target.shape.mix == KEPT) do |router|
            target.load_tool.measure(router.url(target.path), connections: CLIENTS, seconds: seconds, rate: @rate)
          end
        end
      end
    end
  end
end
