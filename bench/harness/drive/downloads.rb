# frozen_string_literal: true

require_relative "requests"

module Bench
  module Drive
    # Large downloads. After they have been measured alone they continue, with short requests beside them.
    class Downloads < Requests
      # Number of connections with short requests, and the seconds that the downloads continue before and after them.
      SHORT = 4
      MARGIN = 0.5

      # short: path of a short response.
      def initialize(answer_bytes:, short:)
        super(answer_bytes: answer_bytes)
        @short = short
      end

      def units
        { many: "downloads", one: "download" }
      end

      def complete(target, seconds, found)
        downloads = Thread.new { load(target, seconds + 2 * MARGIN, nil) }
        sleep MARGIN
        short = target.load_tool.measure(target.running.url(@short), connections: SHORT, seconds: seconds)
        found.short_rate = short.rate
        found.short_p99 = short.percentile(99) if short.requests.positive?
        found.beside_short = downloads.value.rate
        found.errors = [found, downloads.value, short].map(&:errors).reduce { |all, more| all.merge(more) { |_, a, b| a + b } }
      end

      def summary(found)
        late = found.short_p99 ? format("%.2f ms", found.short_p99) : "none"
        format("%s  least/most %.2f  short %.0f/s  p99 %s", super, found.least_over_most || 0, found.short_rate, late)
      end
    end
  end
end
