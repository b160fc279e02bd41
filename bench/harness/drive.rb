# frozen_string_literal: true

module Bench
  # What puts the load on, and what its figures are. A drive answers:
  # `units` (what is counted, for headings), `speaks?(dialect, shape)`, `warm_up(target, seconds)`,
  # `measure(target, seconds)` (a Measurement), `problem(measurement)` (why it is none, or nil), `summary(measurement)`; if it
  # likes also `complete(target, seconds, measurement)`, for what must not count as CPU time of the measurement,
  # `clients(shape)` (words for who they are), `workload(shape)` and `extent(shape, seconds)` (what a simulation has to know).
  module Drive
    # Seconds of silence after which nothing more is expected. Some servers publish everything before they deliver anything.
    PATIENCE = 60

    # One server under load: the load tool, the Running server, the shape, the server's dialect and the path it is asked for.
    Target = Struct.new(:load_tool, :running, :shape, :dialect, :path) do
      def connections
        shape.connections
      end

      # Whether it is asked over HTTP/2.
      def http2?
        running.http2?
      end

      # The Tls that is spoken, or nil.
      def tls
        running.tls
      end

      def url
        running.url(path)
      end

      # An address of the server for WebSockets.
      def websocket(path)
        running.url(path).sub(/\Ahttp/, "ws")
      end

      # Runs the load tool over WebSockets or event streams and returns its document.
      def real_time(*arguments, &block)
        raise Error, "#{load_tool.version} knows neither WebSockets nor event streams" unless load_tool.respond_to?(:real_time)

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
require_relative "drive/kinds"
require_relative "drive/pages"
require_relative "drive/downloads"
require_relative "drive/starts"
require_relative "drive/echoes"
require_relative "drive/broadcast"
require_relative "drive/idle_sockets"
