# frozen_string_literal: true

module Bench
  module Servers
    # Iodine (C, facil.io): one worker is one process.
    class Iodine < Server
      def dialect
        Dialect::RACK_PUSH
      end

      def command(site, port, shape)
        [*executable, "-b", "127.0.0.1", "-p", port.to_s, "-w", shape.workers.to_s, "-t", shape.threads.to_s, site.rackup]
      end
    end
  end
end
