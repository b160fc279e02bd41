# frozen_string_literal: true

require "openssl"

module Fairlead
  module Acme
    # The answers to challenges, in files that the workers read.
    class Answers
      # The extension of a certificate that is an answer (RFC 8737 §3).
      ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31"

      # Seconds for which such a certificate is valid; it is deleted after a few.
      VALIDITY = 24 * 3600

      # Valid names of files.
      TOKEN = /\A[\w-]{1,128}\z/
      HOST = /\A\w[\w.-]{0,252}\z/

      def initialize(store)
        @store = store
        @given = []
      end

      # The authority asks for +host+; the answer contains +authorization+.
      def give(challenge, host:, token:, authorization:)
        raise Problem.new("malformed", "the authority has sent the token #{token.inspect}") unless TOKEN.match?(token)
        raise Problem.new("malformed", "the authority asks for the host #{host.inspect}") unless HOST.match?(host)

        case challenge
        when "http-01" then write(challenge, token, authorization)
        when "tls-alpn-01" then write(challenge, "#{host}.pem", certificate(host, authorization))
        end
      end

      # Removes the answers of this order.
      def take_away
        @given.each { |name| @store.folder.delete(*name) }
        @given.clear
      end

      private

      def write(challenge, name, text)
        @given << @store.answer(challenge, name)
        @store.folder.write(*@given.last, text)
      end

      # The key and the certificate, which is valid only for this host.
      def certificate(host, authorization)
        key = OpenSSL::PKey::EC.generate("prime256v1")
        certificate = blank(key)
        certificate.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", "DNS:#{host}"))
        digest = OpenSSL::ASN1::OctetString.new(OpenSSL::Digest::SHA256.digest(authorization))
        certificate.add_extension(OpenSSL::X509::Extension.new(ACME_IDENTIFIER, digest.to_der, true))
        key.private_to_pem + certificate.sign(key, "SHA256").to_pem
      end

      def blank(key)
        OpenSSL::X509::Certificate.new.tap do |certificate|
          certificate.version = 2
          certificate.serial = OpenSSL::BN.rand(120)
          certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=ACME challenge")
          certificate.not_before = Time.now - VALIDITY
          certificate.not_after = Time.now + VALIDITY
          certificate.public_key = key
        end
      end
    end
  end
end
