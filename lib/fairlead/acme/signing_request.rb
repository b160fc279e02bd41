# frozen_string_literal: true

require "openssl"

module Fairlead
  module Acme
    # The request for a certificate (RFC 2986) for some hosts, with a new key, which never leaves this process.
    class SigningRequest
      CURVE = "prime256v1"

      attr_reader :key

      def initialize(hosts)
        @hosts = hosts
        @key = OpenSSL::PKey::EC.generate(CURVE)
      end

      def to_der
        request = OpenSSL::X509::Request.new
        request.version = 0
        request.subject = OpenSSL::X509::Name.new
        request.public_key = key
        request.add_attribute(OpenSSL::X509::Attribute.new("extReq", extensions))
        request.sign(key, "SHA256").to_der
      end

      private

      def extensions
        names = OpenSSL::X509::ExtensionFactory.new.create_extension(Certificate::SAN, @hosts.map { |host| "DNS:#{host}" }.join(","))
        OpenSSL::ASN1::Set.new([OpenSSL::ASN1::Sequence.new([names])])
      end
    end
  end
end
