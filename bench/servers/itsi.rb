# frozen_string_literal: true

module Bench
  module Servers
    # Itsi (Rust: hyper and tokio).
    class Itsi < Server
      def gem_name
        "itsi-server"
      end

      def command(site, port, shape)
        [*executable, "-r", site.rackup, "-b", "http://127.0.0.1:#{port}", "-w", shape.workers.to_s, "-t", shape.threads.to_s]
      end
    end
  end
end
