# frozen_string_literal: true

module Bench
  module Drive
    # Messages of one publisher to all connections, over WebSockets or event streams. Counts deliveries.
    class Broadcast
      TROUBLES = %w[lost duplicated out_of_order truncated].freeze

      def initialize(messages:, size:, events: false)
        @messages = messages
        @size = size
        @events = events
      end

      def units
        { many: "deliveries", one: "delivery" }
      end

      def speaks?(dialect, shape)
        path = @events ? dialect.events : dialect.chat
        !path.nil? && (shape.single? || !dialect.one_process)
      end

      def warm_up(target, _seconds)
        load(target, [@messages / 10, 1].max)
      end

      def measure(target, _seconds)
        found = load(target, @messages)
        deliveries = found["deliveries"]
        errors = found["errors"].merge(deliveries.slice(*TROUBLES), found["messages"].slice("rejected", "unsent"))
        Measurement.new(
          rate: deliveries["per_second"], requests: deliveries["received"], seconds: found["seconds"],
          errors: errors.reject { |_, count| count.zero? }, bytes: found["bytes"]["read"], latency: Load.curve(found["latency_ms"])
        )
      end

      def problem(found)
        "nothing was delivered: #{found.errors}" if found.requests.zero?
      end

      def summary(found)
        format("%.0f/s  p99 %.1f ms  %s", found.rate, found.percentile(99), found.errors.map { |kind, count| "#{kind} #{count}" }.join(", "))
      end

      private

      def load(target, messages)
        dialect = target.dialect
        how = @events ? [target.running.url(dialect.events), "--sse", "--publish", target.running.url(dialect.publish)] : chat(target)
        target.real_time(*how, "--messages", messages.to_s, "--size", @size.to_s)
      end

      def chat(target)
        [target.websocket(target.dialect.chat), "--broadcast", *target.dialect.arguments_for(:chat)]
      end
    end
  end
end
