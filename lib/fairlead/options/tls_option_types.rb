# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options about TLS.
    module Types
      # A host, a port and a Hash of parameters, as in Puma's `ssl_bind`; the value is an address.
      class SslAddress < Type
        def initialize
          super(nil)
        end

        def expectation = "a host, a port and parameters such as cert: \"a.pem\", key: \"a.key\""

        def parse(value)
          host, port, parameters = value
          port = Integer(port, exception: false)
          invalid!(value) unless port && parameters.is_a?(Hash) && [String, Symbol].any? { |type| host.is_a?(type) }

          Binding::Ssl.address_for(host.to_s, port, parameters)
        end
      end

      # A certificate with its key and, optionally, an OCSP response: three paths; the first two may be texts in PEM instead.
      # The value is [chain, key, response or nil].
      class CertificateFiles < Type
        PEM = /\A\s*-----BEGIN /

        def list? = true

        def expectation = "CERT,KEY or CERT,KEY,OCSP: the paths of a certificate and its key, and of an OCSP response"

        def parse(value)
          parts = value.is_a?(String) ? value.split(",", -1) : value
          invalid!(value) unless parts.is_a?(Array) && parts.size.between?(2, 3)

          chain, key, response = parts.map { |part| place_of(part) || invalid!(value) }
          [chain, key, response]
        end

        def format(value) = value.compact.join(",")

        private

        def place_of(part)
          return Tls::Store.add(part) if part.respond_to?(:to_pem) || PEM.match?(part.to_s)

          path = part.respond_to?(:to_path) ? part.to_path : part
          path if path.is_a?(String) && !path.strip.empty? && !path.include?("\0")
        end
      end
    end
  end
end
