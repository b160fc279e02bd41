# frozen_string_literal: true

module Bench
  module Servers
    # Fairlead from this checkout.
    class Fairlead < Server
      def rank
        0
      end

      def missing
        "the extension is not built (bin/setup)" if Dir[File.join(ROOT, "lib/fairlead/fairlead.{so,bundle}")].empty?
      end

      def version
        File.read(File.join(ROOT, "lib/fairlead/version.rb"))[/"([^"]+)"/, 1]
      end

      def note(shape)
        "one process (`-w 0`)" if shape.single?
      end

      def dialect
        Dialect::RACK_PUSH
      end

      def tls?
        true
      end

      # On plain addresses with prior knowledge, on ssl:// by ALPN.
      def http2?
        true
      end

      def command(site, port, shape)
        command_at(address(site, port), site, shape)
      end

      # The command line with a listening address.
      def command_at(address, site, shape)
        workers = shape.single? ? 0 : shape.workers
        [RbConfig.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/fairlead"), "-C", "-", "-e", "production",
         "-b", address, "-w", workers.to_s, "-t", "#{shape.threads}:#{shape.threads}", *options(site), site.rackup]
      end

      private

      def address(site, port)
        pair = site.tls&.pair
        pair ? "ssl://127.0.0.1:#{port}?cert=#{pair.certificate}&key=#{pair.key}" : "tcp://127.0.0.1:#{port}"
      end

      # Arguments of a variant.
      def options(_site)
        []
      end
    end
  end
end
