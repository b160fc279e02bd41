# frozen_string_literal: true

require "open3"

module Bench
  module Servers
    # nginx as a file server, with as many workers as the others. It has no application; requests other than for files,
    # including the check that it has started, get a constant response from its configuration.
    class Nginx < Server
      PLACES = [*ENV.fetch("PATH", "").split(":"), "/usr/sbin", "/usr/local/sbin"].freeze

      def rank
        2
      end

      def missing
        "nginx is not installed" unless program
      end

      def version
        output, = Open3.capture2e(program, "-v")
        output[%r{nginx/(\S+)}, 1]
      end

      def way
        :public
      end

      def note(_shape)
        "no Ruby: `sendfile on`, `access_log off`, no limit of requests per connection, idle for 10 minutes#{", #{file_cache}" if file_cache}"
      end

      def tls?
        true
      end

      def http2?
        true
      end

      def processes(shape)
        shape.workers + 1
      end

      def command(site, port, shape)
        [program, "-p", site.directory, "-e", "stderr", "-c", site.write("nginx.conf", configuration(site, port, shape))]
      end

      private

      def program
        PLACES.map { |place| File.join(place, "nginx") }.find { |path| File.executable?(path) }
      end

      # Directive for its cache of files, or nil.
      def file_cache; end

      # A worker started by root becomes another user, who may not look into the folder.
      def user
        "user root root;" if Process.uid.zero?
      end

      # Directives of a scenario for the block `http` or `server`, in a file of the site; PORT stands for the port.
      def directives(site, block, port)
        path = site.path("nginx-#{block}.conf")
        File.read(path).gsub("PORT", port.to_s) if File.exist?(path)
      end

      # The upstream servers for forwarded requests, or nil.
      def upstream(_site); end

      def locations
        <<~CONF
          location = / { default_type text/plain; return 200 "ready\\n"; }
          location = /short { default_type text/plain; return 200 "#{"x" * 120}\\n"; }
        CONF
      end

      # Sessions are in memory that all workers share, and in tickets.
      def tls(site)
        pair = site.tls&.pair or return
        "ssl_certificate #{pair.certificate}; ssl_certificate_key #{pair.key}; ssl_protocols TLSv1.2 TLSv1.3; " \
          "ssl_session_cache shared:TLS:10m; ssl_session_tickets on;"
      end

      def configuration(site, port, shape)
        <<~CONF
          #{user}
          daemon off;
          worker_processes #{shape.workers};
          pid nginx.pid;
          error_log stderr error;
          events { worker_connections #{[4096, 2 * shape.connections].max}; }
          http {
            access_log off;
            sendfile on;
            keepalive_requests 1000000000;
            keepalive_timeout 600s;
            #{"#{file_cache};" if file_cache}
            #{%w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{kind};" }.join(" ")}
            types { text/plain txt; }
            default_type application/octet-stream;
            #{upstream(site)}
            server {
              listen 127.0.0.1:#{port}#{" ssl" if site.tls}#{" http2" if site.http2};
              #{tls(site)}
              root #{site.path("public")};
              #{directives(site, "server", port)}
              #{locations}
            }
            #{directives(site, "http", port)}
          }
        CONF
      end
    end
  end
end
