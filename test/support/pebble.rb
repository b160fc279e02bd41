# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "openssl"
require "socket"
require "tmpdir"
require "uri"
require_relative "name_server"
require_relative "port_relay"
require_relative "waiting"

module Fairlead
  module Test
    # Pebble, a certificate authority for tests (Debian's package `pebble`), in a folder of its own. It resolves every host
    # to 127.0.0.1, and requests challenges at #http and #tls. These can point to any server, one after the other.
    #
    #   pebble = Pebble.new(certificateValidityPeriod: 6).start
    #   pebble.http.target = server.port
    #   pebble.order("shop.example")   # a value for --acme
    class Pebble
      include Waiting

      # It refuses 20 per cent of valid nonces, and never reuses authorizations.
      ENVIRONMENT = { "PEBBLE_VA_NOSLEEP" => "1", "PEBBLE_WFE_NONCEREJECT" => "20", "PEBBLE_AUTHZREUSE" => "0" }.freeze

      ATTEMPTS = 5

      # Ports where Pebble requests challenges, and its own port.
      attr_reader :http, :tls, :front

      # +settings+: of Pebble's configuration file.
      def initialize(environment: {}, **settings)
        @environment = ENVIRONMENT.merge(environment)
        @settings = settings
        @folder = Dir.mktmpdir("fairlead-pebble-")
        @http = PortRelay.new
        @tls = PortRelay.new
        @front = PortRelay.new
        @names = NameServer.new
      end

      # Another process can take a port between its choice and its use.
      def start
        write_certificate
        ATTEMPTS.times do
          launch
          next unless reachable?

          front.target = @port
          return self
        end
        raise "pebble does not start\n#{log}"
      end

      # Returns a value for --acme that orders a certificate of this authority.
      def order(hosts, **keywords)
        query = URI.encode_www_form(directory: directory, ca: ca, terms_of_service_agreed: true, **keywords)
        "#{hosts}?#{query}"
      end

      def directory = "https://127.0.0.1:#{front.port}/dir"

      # Path of the root of Pebble's own certificate.
      def ca = path("certificate.pem")

      # Root of the certificates that it issues; a new one after each start.
      def root
        OpenSSL::X509::Certificate.new(get(@management_port, "/roots/0"))
      end

      def stop
        Process.kill(:KILL, @pid)
        Process.wait(@pid)
        [@http, @tls, @front, @names].each(&:close)
        FileUtils.rm_rf(@folder)
      end

      def log = File.read(path("log"))

      # Number of issued certificates.
      def issued = log.scan("Issued certificate").size

      private

      def path(name) = File.join(@folder, name)

      def launch
        @port, @management_port = free_ports
        write_settings
        arguments = ["-config", path("settings.json"), "-dnsserver", "127.0.0.1:#{@names.port}", "-strict"]
        @pid = Process.spawn(@environment, "pebble", *arguments, chdir: @folder, in: File::NULL, %i[out err] => [path("log"), "a"])
      end

      def free_ports
        servers = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
        servers.map { |server| server.addr[1] }
      ensure
        servers.each(&:close)
      end

      def write_settings
        File.write(path("settings.json"), JSON.generate(
                                            pebble: {
                                              listenAddress: "127.0.0.1:#{@port}", managementListenAddress: "127.0.0.1:#{@management_port}",
                                              certificate: ca, privateKey: path("key.pem"), httpPort: http.port, tlsPort: tls.port,
                                              ocspResponderURL: "", **@settings
                                            }
                                          ))
      end

      def write_certificate
        key = OpenSSL::PKey::EC.generate("prime256v1")
        certificate = OpenSSL::X509::Certificate.new
        certificate.version = 2
        certificate.serial = 1
        certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=Pebble")
        certificate.not_before = Time.now - 60
        certificate.not_after = Time.now + 3600
        certificate.public_key = key
        factory = OpenSSL::X509::ExtensionFactory.new
        certificate.add_extension(factory.create_extension("subjectAltName", "IP:127.0.0.1"))
        certificate.add_extension(factory.create_extension("basicConstraints", "CA:TRUE", true))
        File.write(ca, certificate.sign(key, "SHA256").to_pem)
        File.write(path("key.pem"), key.private_to_pem)
      end

      # Returns true once Pebble responds; false if it has ended.
      def reachable?
        wait_until("pebble to respond", seconds: 30) do
          return false if Process.wait(@pid, Process::WNOHANG)

          get(@port, "/dir")
        rescue SystemCallError
          nil
        end
      end

      def get(port, path)
        Net::HTTP.start("127.0.0.1", port, use_ssl: true, ca_file: ca) { |http| http.get(path).body }
      end
    end
  end
end
