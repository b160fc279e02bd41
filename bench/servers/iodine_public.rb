# frozen_string_literal: true

require_relative "iodine"

module Bench
  module Servers
    # Iodine that serves a folder itself.
    class IodinePublic < Iodine
      def name
        "iodine-public"
      end

      def gem_name
        "iodine"
      end

      def way
        :public
      end

      def note(_shape)
        "`-www`"
      end

      def command(site, port, shape)
        [*executable("iodine"), "-b", "127.0.0.1", "-p", port.to_s, "-w", shape.workers.to_s, "-t", shape.threads.to_s,
         "-www", site.path("public"), site.rackup]
      end
    end
  end
end
