# frozen_string_literal: true

module Bench
  # A drive puts load on a server and measures it. Its methods are `units` (the counted things, for headings),
  # `speaks?(dialect, shape)`, `warm_up(target, seconds)`, `measure(target, seconds)` (a Measurement),
  # `problem(measurement)` (why it is invalid, or nil), `summary(measurement)`; optional are `complete(target, seconds,
  # measurement)`, for work that must not count as CPU time of the measurement, `clients(shape)` (a description of the
  # clients), `workload(shape)` and `extent(shape, seconds)` (for a simulation).
  module Drive
    # Seconds of silence after which nothing more is expected. Some servers publish everything before they deliver
    # anything.
    PATIENCE = 60

    # One server under load: the load tool, the Running server, the shape, the server's dialect and the path to request.
    Target = Struct.new(:load_tool, :running, :shape, :dialect, :path) do
      def connections
        shape.connections
      end

      # True if requests use HTTP/2.
      def http2?
        running.http2?
      end

      # The Tls to use, or nil.
      def tls
        running.tls
      end

      def url
        running.url(path)
      end

      # A WebSocket URL of the server.
      def websocket(path)
        running.url(path).sub(/\Ahttp/, "ws")
      end

      # Runs the load tool over WebSockets or event streams and returns its document.
      def real_time(*arguments, &block)
        raise Error, "#{load_tool.version} supports neither WebSockets nor event streams" unless load_tool.respond_to?(:real_time)

        load_tool.real_time(*arguments, "-c", connections.to_s, "--timeout", PATIENCE.to_s, &block)
      end
    end
  end
end

require_relative "drive/requests"
require_relative "drive/secure_requests"
require_relative "drive/streams"
require_relative "drive/routed"
require_relative "drive/handshakes"
require_relative "drive/overload"
require_relative "drive/flood"
require_relative "drive/stall"
require_relative "drive/kinds"
require_relative "drive/pages"
require_relative "drive/downloads"
require_relative "drive/starts"
require_relative "drive/echoes"
require_relative "drive/broadcast"
require_relative "drive/idle_sockets"
require_relative "drive/memory"
require_relative "drive/growth"
