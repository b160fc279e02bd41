# frozen_string_literal: true

module Bench
  module Servers
    # Puma; one worker means its single mode.
    class Puma < Server
      def note(shape)
        "one process (`-w 0`)" if shape.single?
      end

      def command(site, port, shape)
        workers = shape.single? ? 0 : shape.workers
        [*executable("puma"), "-C", "-", "-e", "production", "-q", "-b", "tcp://127.0.0.1:#{port}",
         "-w", workers.to_s, "-t", "#{shape.threads}:#{shape.threads}", site.rackup]
      end
    end
  end
end
