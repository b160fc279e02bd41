# frozen_string_literal: true

module Bench
  module Servers
    # Thin: one process, an event loop, and a thread pool if the shape has several threads. It keeps a connection alive
    # only if the app declares the length of its response.
    class Thin < Server
      def runs?(shape, _scenario)
        shape.single?
      end

      def note(shape)
        how = shape.threads == 1 ? "the app runs on the event loop" : "`--threaded --threadpool-size #{shape.threads}`"
        "#{how}; with Rack::ContentLength, as it needs for keep-alive"
      end

      def tls?
        true
      end

      # It keeps a hundred connections after a response.
      def idle_after
        :handshake
      end

      def command(site, port, shape)
        threads = shape.threads == 1 ? [] : ["--threaded", "--threadpool-size", shape.threads.to_s]
        rackup = site.write("thin.ru", "use Rack::ContentLength\n#{File.read(site.rackup)}")
        [*executable, "start", "-q", "-e", "production", "-a", "127.0.0.1", "-p", port.to_s, "-R", rackup, *threads, *tls(site)]
      end

      private

      def tls(site)
        pair = site.tls&.pair or return []
        ["--ssl", "--ssl-key-file", pair.key, "--ssl-cert-file", pair.certificate, "--ssl-disable-verify"]
      end
    end
  end
end
