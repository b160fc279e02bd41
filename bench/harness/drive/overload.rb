# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # Requests at a multiple of the server's capacity, on a fixed schedule (open loop): late responses do not slow the clients down.
    # The capacity is measured before, with a closed loop. The shape's mix begins with the factor: "3 × capacity".
    class Overload < Requests
      # Options of Fairlead for overload control. Not after a stall: a target for the queue refuses the clients that have stayed, too.
      CONTROL = %w[--queue-target 0.1].freeze

      # A response is useful within this time, in seconds from the moment when the request was due.
      USEFUL = 1

      # times: factor for the duration of the measurement.
      def initialize(answer_bytes:, times: 1)
        super(answer_bytes: answer_bytes)
        @times = times
      end

      def units
        { many: "useful responses", one: "useful response" }
      end

      def warm_up(target, seconds)
        @capacity = send_to(target, connections: 2 * target.shape.concurrency, seconds: 2 * seconds).rate
      end

      def measure(target, seconds)
        found = send_to(target, connections: target.connections, seconds: seconds * @times, rate: Float(target.shape.mix[/\A[\d.]+/]) * @capacity,
                                within: USEFUL)
        found.tap { found.capacity = @capacity }
      end

      def problem(found)
        "no request got a response" if found.requests.zero?
      end

      def summary(found)
        format("%.0f/s useful of %.0f/s  p99 %.0f ms  %d refused  %d failed", found.useful_rate, found.capacity, found.good_p99 || 0,
               found.refused_count, found.failed_count)
      end

      private

      # Each request is a client of its own, with its own connection.
      def send_to(target, **how) = target.load_tool.measure(target.url, keep_alive: false, **how)
    end
  end
end
