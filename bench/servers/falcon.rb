# frozen_string_literal: true

module Bench
  module Servers
    # Falcon: a fiber for each request, so it ignores a shape's threads.
    class Falcon < Server
      def note(_shape)
        "a fiber for each request, regardless of `-t`"
      end

      def processes(shape)
        shape.workers + 1
      end

      def command(site, port, shape)
        [*executable, "serve", "-b", "http://127.0.0.1:#{port}", "-n", shape.workers.to_s, "-c", site.rackup]
      end
    end
  end
end
