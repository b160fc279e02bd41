# frozen_string_literal: true

require "json"
require "openssl"

module Fairlead
  module Acme
    # The key of an account: signs what is sent to the authority (RFC 7515, with ES256), and is part of each answer to a
    # challenge (RFC 7638, RFC 8555 §8.1).
    class AccountKey
      CURVE = "prime256v1"

      # How long each of the two numbers of a signature is.
      NUMBER_BYTES = 32

      class << self
        # +pem+: what #to_pem has returned once, or nil for a new key.
        def load(pem) = new(pem ? OpenSSL::PKey::EC.new(pem) : OpenSSL::PKey::EC.generate(CURVE))

        # As URLs have it, without padding (RFC 7515 §2).
        def encode(bytes) = [bytes].pack("m0").tr("+/", "-_").delete("=")

        # The bytes of such a text.
        def decode(text) = text.tr("-_", "+/").unpack1("m")

        # What a secret that is shared with the authority signs (RFC 8555 §7.3.4). +secret+: as the authority writes it.
        def sign_shared(header, payload, secret)
          sign(header.merge(alg: "HS256"), payload) { |text| OpenSSL::HMAC.digest("SHA256", decode(secret), text) }
        end

        # The block signs a text.
        def sign(header, payload)
          parts = [JSON.generate(header), payload].map { |part| encode(part) }
          { protected: parts.first, payload: parts.last, signature: encode(yield(parts.join("."))) }
        end
      end

      def initialize(key)
        @key = key
      end

      def to_pem = @key.private_to_pem

      # What is sent, signed. +payload+: text.
      def sign(header, payload)
        self.class.sign(header.merge(alg: "ES256"), payload) { |text| numbers(@key.sign("SHA256", text)) }
      end

      # The public half, with its members in the order that #thumbprint wants.
      def to_h
        point = @key.public_key.to_octet_string(:uncompressed).byteslice(1..)
        { crv: "P-256", kty: "EC", x: encode(point.byteslice(0, NUMBER_BYTES)), y: encode(point.byteslice(NUMBER_BYTES, NUMBER_BYTES)) }
      end

      # The answer to a challenge with this token.
      def authorization(token) = "#{token}.#{thumbprint}"

      private

      def encode(bytes) = self.class.encode(bytes)

      def thumbprint = encode(OpenSSL::Digest::SHA256.digest(JSON.generate(to_h)))

      # From the form that OpenSSL has for a signature to that of RFC 7518 §3.4.
      def numbers(signature)
        OpenSSL::ASN1.decode(signature).value.map { |number| number.value.to_s(2).rjust(NUMBER_BYTES, "\0") }.join
      end
    end
  end
end
