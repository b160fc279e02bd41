# frozen_string_literal: true

require "openssl"

module Fairlead
  module Acme
    # The text of a certificate file: the key, the certificate, and the certificates above it, in PEM.
    class Bundle
      # The longest text to read. A chain has a few KB.
      MOST_BYTES = 256 * 1024

      PEM = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/m
      private_constant :PEM

      attr_reader :text

      # +name+: for messages.
      def initialize(text, name)
        @text = text.b
        @name = name
      end

      # The certificate; nil if the text contains none.
      def certificate
        @certificate ||= Certificate.parse(@text)
      end

      # The reason why the engine cannot load it; nil if it can.
      def fault
        return "#{@name}: the text is longer than #{MOST_BYTES} bytes" if @text.bytesize > MOST_BYTES

        Native::Tls.new(certificates: [[[@name, @text], [@name, @text], nil]], verify_mode: "none", tls13_only: false, http2: true, ticket_keys: [])
        certificate ? nil : "#{@name}: OpenSSL cannot read the certificate"
      rescue ArgumentError => e
        e.message
      end

      # True if each certificate has signed the one before it (RFC 8555 §7.4.2).
      def linked?
        chain = @text.scan(PEM).map { |pem| OpenSSL::X509::Certificate.new(pem) }
        chain.each_cons(2).all? { |one, above| one.issuer == above.subject && one.verify(above.public_key) }
      rescue OpenSSL::OpenSSLError
        false
      end
    end
  end
end
