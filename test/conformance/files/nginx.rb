# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"
require_relative "../../support/http_client"
require_relative "../interoperability/proxies"

module StaticFiles
  # nginx with its default configuration, serving a folder through a Unix socket in its own folder, for comparison.
  class Nginx
    include Fairlead::Test::Waiting

    CONFIGURATION = <<~CONF
      daemon off;
      master_process off;
      pid nginx.pid;
      error_log stderr crit;
      events {}
      http {
        access_log off;
        client_body_temp_path body;
        proxy_temp_path proxy;
        fastcgi_temp_path fastcgi;
        scgi_temp_path scgi;
        uwsgi_temp_path uwsgi;
        types { text/plain txt; text/html html; text/css css; text/javascript js; }
        gzip_static on;
        server {
          listen unix:%<folder>s/socket;
          root %<root>s;
        }
      }
    CONF

    # nginx writes field names with capitals.
    class Client < Fairlead::Test::HttpClient
      private

      def parse(head) = super(head.gsub(/^[\w-]+:/, &:downcase))
    end

    # Path of the program; nil if it is not installed.
    def self.program = Proxy.program("nginx")

    def self.version = Gem::Version.new(`#{program} -v 2>&1`[%r{nginx/([\d.]+)}, 1])

    def initialize(root)
      @folder = Dir.mktmpdir("fairlead-nginx-")
      File.write(File.join(@folder, "conf"), format(CONFIGURATION, folder: @folder, root: root))
      @pid = Process.spawn(self.class.program, "-p", @folder, "-e", "stderr", "-c", "conf", in: File::NULL, %i[out err] => log_path)
    end

    # Returns a client with a new connection.
    def client = Client.new(connect)

    # Opens a connection.
    def connect
      wait_until("nginx to listen") { socket || (exited? && raise("nginx has ended:\n#{File.read(log_path)}")) }
    end

    def running? = !exited?

    def stop
      Process.kill(:KILL, @pid) && Process.wait(@pid) unless exited?
    ensure
      FileUtils.rm_rf(@folder)
    end

    private

    def exited?
      @status ||= Process.wait2(@pid, Process::WNOHANG)&.last
      !@status.nil?
    end

    def log_path = File.join(@folder, "log")

    def socket
      UNIXSocket.new(File.join(@folder, "socket"))
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      nil
    end
  end
end
