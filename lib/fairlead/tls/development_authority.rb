# frozen_string_literal: true

require "ipaddr"
require "openssl"

module Fairlead
  module Tls
    # The authority behind a DevelopmentCertificate. It is made here, once for each user, and can be trusted on this machine.
    # With its stolen key, an attacker can make only certificates for this machine and for private networks.
    class DevelopmentAuthority
      # Permitted subjects of its certificates (RFC 5280 §4.2.1.10): names that nobody can own (RFC 6761, RFC 6762, RFC 8375,
      # and `internal`), and addresses of this machine and of private networks.
      DOMAINS = %w[localhost test local internal home.arpa].freeze
      NETWORKS = %w[127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 ::1/128 fc00::/7 fe80::/10].freeze

      HOST = /\A[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\z/

      LIFE = 3650 * 24 * 3600

      # The files.
      CERTIFICATE = "authority.pem"
      KEY = "authority.key.pem"

      class << self
        # True if it may certify a name, or an address.
        def allows?(host)
          address = IPAddr.new(host)
          NETWORKS.any? { |network| IPAddr.new(network).include?(address) }
        rescue IPAddr::Error
          HOST.match?(host) && DOMAINS.any? { |domain| host == domain || host.end_with?(".#{domain}") }
        end

        # A certificate without extensions and signature.
        def blank(key, name, life, issuer = nil)
          OpenSSL::X509::Certificate.new.tap do |certificate|
            certificate.version = 2
            certificate.serial = OpenSSL::BN.rand(120)
            certificate.subject = OpenSSL::X509::Name.parse(name)
            certificate.issuer = issuer || certificate.subject
            certificate.not_before = Time.now - (24 * 3600) # for clocks that differ
            certificate.not_after = Time.now + life
            certificate.public_key = key
          end
        end

        # +extensions+: name => value, as OpenSSL writes them.
        def extend_certificate(certificate, issuer, extensions)
          factory = OpenSSL::X509::ExtensionFactory.new(issuer, certificate)
          extensions.each { |name, value| certificate.add_extension(factory.create_extension(name, value)) }
        end
      end

      # +folder+: a StateFolder.
      def initialize(folder)
        @folder = folder
      end

      # Makes the authority, unless there is one that is valid for +life+ seconds; returns itself.
      def prepare(life)
        make unless key && certificate && certificate.not_after > Time.now + life && certificate.check_private_key(key)
        self
      end

      # An OpenSSL::X509::Certificate; nil if it was never made.
      def certificate = @certificate ||= read(CERTIFICATE) { |text| OpenSSL::X509::Certificate.new(text) }

      # The file with the certificate, for people and programs that should trust it.
      def path = @folder.join(CERTIFICATE)

      # Signs a certificate; returns it.
      def sign(signed) = signed.sign(key, "SHA256")

      # True if the libraries of this system trust it. A browser may decide otherwise.
      def trusted?
        OpenSSL::X509::Store.new.tap(&:set_default_paths).verify(certificate)
      end

      # Commands that make a system, and its browsers, trust it: description => command.
      def trust_commands(macos: RUBY_PLATFORM.include?("darwin"))
        quoted = path.match?(%r{\A[\w./-]+\z}) ? path : "'#{path.gsub("'", %('\\\\''))}'"
        return { "macOS" => "security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db #{quoted}" } if macos

        {
          "this system" => "sudo cp #{quoted} /usr/local/share/ca-certificates/fairlead-development.crt && sudo update-ca-certificates",
          "Chromium" => "certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n fairlead-development -i #{quoted}"
        }
      end

      private

      def key = @key ||= read(KEY) { |text| OpenSSL::PKey::EC.new(text) }

      def read(name)
        text = @folder.read(name)
        yield text if text
      rescue OpenSSL::OpenSSLError
        nil
      end

      def make
        @key = OpenSSL::PKey::EC.generate("prime256v1")
        name = "/O=Fairlead/CN=Fairlead development #{OpenSSL::Random.random_bytes(4).unpack1("H*")}"
        certificate = self.class.blank(@key, name, LIFE)
        self.class.extend_certificate(certificate, certificate,
                                      "subjectKeyIdentifier" => "hash", "basicConstraints" => "critical,CA:TRUE,pathlen:0",
                                      "keyUsage" => "critical,keyCertSign,cRLSign", "nameConstraints" => "critical,#{constraints.join(",")}")
        @certificate = sign(certificate)
        @folder.write(KEY, @key.private_to_pem)
        @folder.write(CERTIFICATE, @certificate.to_pem)
      end

      def constraints
        networks = NETWORKS.map { |network| IPAddr.new(network) }
        DOMAINS.map { |domain| "permitted;DNS:#{domain}" } + networks.map { |network| "permitted;IP:#{network}/#{network.netmask}" }
      end
    end
  end
end
