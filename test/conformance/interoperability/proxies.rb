# frozen_string_literal: true

require "fileutils"
require "open3"
require "socket"
require "tmpdir"
require_relative "../../support/waiting"

# A real proxy in front of a server, in its own folder, reached through a Unix socket there.
class Proxy
  include Fairlead::Test::Waiting

  NGINX = <<~CONF
    daemon off;
    master_process off;
    pid nginx.pid;
    error_log stderr;
    events {}
    http {
      access_log off;
      client_body_temp_path body;
      proxy_temp_path proxy;
      fastcgi_temp_path fastcgi;
      scgi_temp_path scgi;
      uwsgi_temp_path uwsgi;

      map $http_upgrade $connection_upgrade {
        default upgrade;
        ""      "";
      }
      upstream app { server 127.0.0.1:%<port>d; keepalive 4; }

      server {
        listen unix:%<folder>s/socket;
        location / {
          proxy_pass http://app;
          proxy_http_version 1.1;
          proxy_set_header Host $host;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $connection_upgrade;
        }
      }
    }
  CONF

  HAPROXY = <<~CONF
    defaults
      mode http
      timeout connect 5s
      timeout client 30s
      timeout server 30s
      timeout tunnel 1h
    frontend web
      bind unix@%<folder>s/socket
      default_backend app
    backend app
      server app 127.0.0.1:%<port>d
  CONF

  # `proxy_pass` without further settings: nginx sends HTTP/1.0 requests.
  PLAIN_NGINX = <<~CONF.freeze
    #{NGINX[/.*access_log off;\n/m]}
      client_body_temp_path body;
      proxy_temp_path proxy;
      fastcgi_temp_path fastcgi;
      scgi_temp_path scgi;
      uwsgi_temp_path uwsgi;

      server {
        listen unix:%<folder>s/socket;
        location / { proxy_pass http://127.0.0.1:%<port>d; }
      }
    }
  CONF

  KINDS = {
    nginx: [NGINX, ->(folder) { ["nginx", "-p", folder, "-e", "stderr", "-c", "conf"] }],
    haproxy: [HAPROXY, ->(folder) { ["haproxy", "-db", "-C", folder, "-f", "conf"] }]
  }.freeze

  # Proxies that forward requests, but no upgrades.
  PLAIN = { plain_nginx: [PLAIN_NGINX, KINDS[:nginx].last] }.freeze

  # Path of a proxy's program, which may be in a folder for root only; nil if it is not installed.
  def self.program(name)
    [*ENV["PATH"].to_s.split(":"), "/usr/sbin"].map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  # +kind+: one of KINDS or PLAIN, +port+: the server's.
  def initialize(kind, port)
    text, command = KINDS.merge(PLAIN).fetch(kind)
    @folder = Dir.mktmpdir("fairlead-proxy-")
    File.write(File.join(@folder, "conf"), format(text, folder: @folder, port: port))
    name, *arguments = command.call(@folder)
    @pid = Process.spawn(self.class.program(name), *arguments, in: File::NULL, %i[out err] => log_path, pgroup: true)
  end

  # Opens a connection to the proxy.
  def connect
    wait_until("the proxy to listen") { socket || (Process.wait2(@pid, Process::WNOHANG) && raise(log)) }
  end

  # Returns curl's output, and true if the response was complete.
  def curl(path)
    connect.close
    body, status = Open3.capture2("curl", "--silent", "--max-time", "20", "--unix-socket", File.join(@folder, "socket"), "http://localhost#{path}")
    [body, status.success?]
  end

  def stop
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  ensure
    FileUtils.rm_rf(@folder)
  end

  def log = "the proxy has ended:\n#{File.read(log_path)}"

  private

  def log_path = File.join(@folder, "log")

  def socket
    UNIXSocket.new(File.join(@folder, "socket"))
  rescue Errno::ENOENT, Errno::ECONNREFUSED
    nil
  end
end
