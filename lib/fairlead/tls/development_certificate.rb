# frozen_string_literal: true

require "socket"

module Fairlead
  module Tls
    # The certificate of a server on the developer's own machine, for which no public authority would issue one. A
    # DevelopmentAuthority issues it.
    class DevelopmentCertificate
      # The hosts that are always in it.
      NAMES = %w[localhost].freeze
      ADDRESSES = %w[127.0.0.1 ::1].freeze

      EVERY_INTERFACE = %w[* 0.0.0.0 ::].freeze

      DAY = 24 * 3600
      LIFE = 90 * DAY

      # Seconds left on a certificate below which a start makes a new one.
      RENEWED_BEFORE = 30 * DAY

      # The text of a certificate that is not stored, to find out if one can be made. Raises Invalid, also if it could not be
      # stored.
      def self.unkept(host)
        new(host).usable!
        require "tmpdir"
        Dir.mktmpdir("fairlead-") { |folder| File.read(new(host, folder: folder).prepare.path) }
      end

      attr_reader :authority

      # +host+: the host of the listening address. +folder+: the place of the certificate. Raises Invalid.
      def initialize(host = "localhost", folder: StateFolder.default("development"))
        raise Invalid, "a certificate for development cannot be kept: #{StateFolder::HOMELESS}; set HOME, or give cert and key" unless folder

        @host = EVERY_INTERFACE.include?(host.delete("[]")) ? nil : host.delete("[]").downcase
        @folder = StateFolder.new(folder)
        @authority = DevelopmentAuthority.new(@folder)
        refuse unless @host.nil? || DevelopmentAuthority.allows?(@host)
      end

      # Makes the certificate if necessary, and returns itself. Raises Invalid.
      def prepare
        @folder.exclusively(wait: true) do
          authority.prepare(LIFE)
          issue unless good?
        end
        self
      rescue SystemCallError => e
        not_kept(Error.reason(e))
      end

      # Raises Invalid if the certificate cannot be stored.
      def usable! = @folder.usable? || not_kept("the folder cannot be written to")

      # The file with the key, the certificate, and the certificate of the authority.
      def path = @folder.join(name)

      # The names and addresses in the certificate.
      def hosts = [*NAMES, *ADDRESSES, *(@host || private_addresses)].uniq

      private

      def name = "#{(@host || "every-interface").tr(":", "_")}.pem"

      def not_kept(reason) = raise(Invalid, "the certificate for development cannot be kept in #{@folder.path}: #{reason}")

      def refuse
        raise Invalid, "a certificate for development can only be for names such as localhost and shop.test, and for private addresses, not for " \
                     "#{@host}: give the address a cert and a key"
      end

      # True if there is a certificate of this authority that lasts.
      def good?
        text = @folder.read(name) or return false
        certificate = OpenSSL::X509::Certificate.new(text)
        certificate.not_after > Time.now + RENEWED_BEFORE && certificate.verify(authority.certificate.public_key)
      rescue OpenSSL::X509::CertificateError
        false
      end

      def issue
        key = OpenSSL::PKey::EC.generate("prime256v1")
        certificate = DevelopmentAuthority.blank(key, "/CN=localhost", LIFE, authority.certificate.subject)
        DevelopmentAuthority.extend_certificate(certificate, authority.certificate,
                                                "subjectKeyIdentifier" => "hash", "authorityKeyIdentifier" => "keyid",
                                                "basicConstraints" => "critical,CA:FALSE", "keyUsage" => "critical,digitalSignature",
                                                "extendedKeyUsage" => "serverAuth", "subjectAltName" => alternatives)
        @folder.write(name, key.private_to_pem + authority.sign(certificate).to_pem + authority.certificate.to_pem)
      end

      def alternatives = hosts.map { |host| "#{host.match?(/\A[\d.]+\z|:/) ? "IP" : "DNS"}:#{host}" }.join(",")

      # The private addresses of this machine, so that a phone in the same network can be used too.
      def private_addresses
        texts = Socket.ip_address_list.map { |info| info.ip_address.partition("%").first }
        texts.select { |text| DevelopmentAuthority.allows?(text) }
      end
    end
  end
end
