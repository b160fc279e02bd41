# frozen_string_literal: true

module Bench
  module Servers
    # Puma; one worker means its single mode.
    class Puma < Server
      def note(shape)
        "one process (`-w 0`)" if shape.single?
      end

      def tls?
        true
      end

      # Its threads wait 0.2 s for another request after each response.
      def idle_after
        :handshake
      end

      def command(site, port, shape)
        workers = shape.single? ? 0 : shape.workers
        [*executable("puma"), "-C", configuration(site), "-e", "production", "-q", "-b", address(site, port),
         "-w", workers.to_s, "-t", "#{shape.threads}:#{shape.threads}", site.rackup]
      end

      private

      # The path of its configuration file, or "-" for none.
      def configuration(_site) = "-"

      def address(site, port)
        pair = site.tls&.pair
        pair ? "ssl://127.0.0.1:#{port}?cert=#{pair.certificate}&key=#{pair.key}&verify_mode=none" : "tcp://127.0.0.1:#{port}"
      end
    end
  end
end
