# frozen_string_literal: true

require "openssl"

module Fairlead
  module Test
    # Helpers for tests of the option `acme`.
    module AcmeOrders
      # Returns an order, as the option has it.
      def order(*hosts, **keywords)
        Options[:acme].type.parse([*hosts, { terms_of_service_agreed: true, **keywords }])
      end

      # Returns a certificate for +hosts+ and its key, in PEM.
      def pem(*hosts, begins: Time.now, ends: Time.now + 3600, serial: 1)
        key = OpenSSL::PKey::EC.generate("prime256v1")
        certificate = OpenSSL::X509::Certificate.new
        certificate.version = 2
        certificate.serial = serial
        certificate.not_before = begins
        certificate.not_after = ends
        certificate.public_key = key
        names = hosts.map { |host| "DNS:#{host}" }.join(",")
        certificate.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", names))
        key.private_to_pem + certificate.sign(key, "SHA256").to_pem
      end
    end
  end
end
