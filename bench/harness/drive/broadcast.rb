# frozen_string_literal: true

module Bench
  module Drive
    # Messages of one publisher to all connections, over WebSockets or event streams. Counts deliveries.
    class Broadcast
      TROUBLES = %w[lost duplicated out_of_order truncated].freeze

      # rate: messages per second; nil sends them as fast as possible. publishers: connections that publish. by: `:message`
      # publishes through WebSockets, `:post` by requests. events: event streams instead of WebSockets, and requests.
      def initialize(messages:, size:, rate: nil, publishers: 1, by: :message, events: false)
        @messages = messages
        @arguments = ["--size", size.to_s, "--publishers", publishers.to_s, *(["--rate", rate.to_s] if rate)]
        @by = by
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
        target.real_time(*(@events ? events(target) : chat(target)), *publish(target), *@arguments, "--messages", messages.to_s)
      end

      def events(target)
        [target.running.url(target.dialect.events), "--sse"]
      end

      def chat(target)
        [target.websocket(target.dialect.chat), "--broadcast", *target.dialect.arguments_for(posts? ? :listen : :chat)]
      end

      def publish(target)
        posts? ? ["--publish", target.running.url(target.dialect.publish)] : []
      end

      def posts?
        @events || @by == :post
      end
    end
  end
end
