# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # The gauges of all serving processes, as the control server shows them (`/metrics`).
    class Gauges
      # Gauges of an idle process that are zero: all that it serves has ended, and all that it has taken from a budget is back.
      ZERO = %w[connections open_http2_connections queued busy_threads clients websockets event_streams pending_message_bytes
                response_memory_bytes response_disk_bytes request_memory_bytes request_disk_bytes].freeze

      # Gauges without a bound of their own: at most as much as after the warm-up. The application keeps its subscriptions.
      KEPT = %w[channels subscriptions].freeze

      # Gauges of the server.
      SERVER = %w[http_server_active_requests fairlead_waiting_room_waiting].freeze

      # An unsigned number that was counted down below zero looks like this.
      HUGE = 1 << 52

      TYPE = /\A# TYPE (\S+) gauge\z/
      SAMPLE = /\A([a-z_0-9]+)(?:\{([^}]*)\})? (-?[\d.e+]+)\z/

      # Reads them; nil if the control server does not respond, as in a hot restart.
      def self.of(site)
        page = site.control("/metrics")
        page && new(page)
      end

      # +page+: the text of `/metrics`.
      def initialize(page)
        lines = page.lines(chomp: true)
        names = lines.filter_map { |line| line[TYPE, 1] }
        @samples = lines.filter_map { |line| SAMPLE.match(line) }.map(&:captures).select { |name,| names.include?(name) }
                        .map { |name, labels, value| [name, labels.to_s, Float(value)] }
      end

      # Samples that no gauge may have at any time, as texts.
      def impossible = texts(@samples.select { |name, _, value| value.negative? || (value > HUGE && !name.start_with?("fairlead_limit_")) })

      # Samples that the gauges of an idle server do not have, as texts. +before+: Gauges of the same server after its warm-up.
      def busy(before)
        zero = ZERO.map { |name| "fairlead_#{name}" } + SERVER
        kept = KEPT.map { |name| "fairlead_#{name}" }
        texts(@samples.select { |name, _, value| (zero.include?(name) && value != 0) || (kept.include?(name) && value > before.most(name)) })
      end

      # The largest value of a gauge; 0 if there is none.
      def most(name) = @samples.select { |of,| of == name }.map(&:last).max || 0

      # Names of the gauges that #busy needs and that are missing.
      def missing = (ZERO + KEPT).map { |name| "fairlead_#{name}" } - @samples.map(&:first)

      private

      def texts(samples) = samples.map { |name, labels, value| "#{name}{#{labels}} #{value.to_i}" }
    end
  end
end
