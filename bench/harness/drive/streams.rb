# frozen_string_literal: true

require_relative "secure_requests"

module Bench
  module Drive
    # Requests over HTTP/2, several at a time on each connection, with TLS or without. A server that is measured for
    # comparison gets requests over HTTP/1.1, with as many connections as there are streams.
    class Streams < SecureRequests
      # Factor for the duration of the measurement of a slow app.
      LONGER = 6

      # streams: number at a time on each connection; or a list for the load tool ("100,1x10"), which then determines
      # the number of connections. slow: the app holds its threads for long, so there are few requests in a given time,
      # and requests left over from a warm-up would interfere.
      def initialize(answer_bytes:, streams:, slow: false)
        super(answer_bytes: answer_bytes)
        @streams = streams
        @slow = slow
      end

      def clients(_shape)
        case @streams
        when Integer then "#{@streams} #{@streams == 1 ? "stream" : "streams"} on each"
        else "streams #{@streams}"
        end
      end

      # A list has as many connections as the shape; each connection has at least one stream.
      def requests_at_once(shape) = shape.connections * (@streams.is_a?(Integer) ? @streams : 1)

      def warm_up(target, seconds)
        load(target, seconds, @slow ? 2 : nil)
      end

      def measure(target, seconds)
        super(target, @slow ? seconds * LONGER : seconds)
      end

      def summary(found)
        shares = found.http2 && found.http2["classes"].map { |one| format("%d streams: %.2f", *one.values_at("streams", "share")) }
        [super, *(shares if @streams.is_a?(String))].join("  ")
      end

      private

      def load(target, seconds, each)
        how = target.http2? ? { connections: target.connections, streams: @streams } : { connections: target.connections * @streams }
        how[:tls] = target.tls if target.tls
        how[:timeout] = PATIENCE if @slow
        how[:requests] = each * target.connections if each
        target.load_tool.measure(target.url, seconds: seconds, **how).tap do |found|
          problem = target.tls&.problem(found.tls) and raise(Error, problem)
        end
      end
    end
  end
end
