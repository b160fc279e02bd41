# frozen_string_literal: true

require "shellwords"
require_relative "fairlead"
require_relative "nginx"

module Bench
  module Servers
    # The setup of a server without HTTP/2: an nginx that speaks it and forwards requests to Fairlead over HTTP/1.1, on
    # kept connections to a Unix socket.
    class FairleadBehindNginx < Nginx
      # Number of kept connections to Fairlead; above the number of streams of any scenario.
      KEPT = 256

      def name
        "nginx-fairlead"
      end

      def missing
        super || fairlead.missing
      end

      def way
        :app
      end

      # Only beside servers with HTTP/2.
      def runs?(_shape, scenario)
        scenario.http2?(self)
      end

      def note(shape)
        "nginx with #{shape.workers} #{shape.single? ? "worker" : "workers"}, in front of Fairlead on a Unix socket, over kept connections"
      end

      def processes(shape)
        super + fairlead.processes(shape)
      end

      # nginx is the leader of the group, so that it ends first.
      def command(site, port, shape)
        behind = fairlead.command_at("unix://#{socket(site)}", site, shape)
        ["/bin/sh", "-c", "#{behind.shelljoin} & exec #{super.shelljoin}"]
      end

      private

      def fairlead
        @fairlead ||= Fairlead.new
      end

      def socket(site)
        site.path("fairlead.sock")
      end

      def upstream(site)
        "upstream fairlead { server unix:#{socket(site)}; keepalive #{KEPT}; }"
      end

      def locations
        "location / { proxy_pass http://fairlead; proxy_http_version 1.1; proxy_set_header Connection \"\"; }"
      end
    end
  end
end
