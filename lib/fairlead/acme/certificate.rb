# frozen_string_literal: true

require "openssl"

module Fairlead
  module Acme
    # An issued certificate: the end of its validity, and the time of its renewal.
    class Certificate
      # It is renewed when this part of its life is over…
      RENEWED_AFTER = Rational(2, 3)

      # …or earlier by up to this part, so that renewals are spread out. The offset follows from the certificate, so it stays
      # the same after a restart.
      JITTER = Rational(1, 30)

      SAN = "subjectAltName"

      # The first certificate in the text; nil if there is none.
      def self.parse(pem)
        new(OpenSSL::X509::Certificate.new(pem)) if pem
      rescue OpenSSL::X509::CertificateError
        nil
      end

      # +certificate+: an OpenSSL::X509::Certificate.
      def initialize(certificate)
        @certificate = certificate
      end

      # The same certificate.
      def ==(other) = other.is_a?(Certificate) && to_der == other.to_der

      def to_der = @certificate.to_der

      def begins_at = @certificate.not_before

      def expires_at = @certificate.not_after

      def expired?(now = Time.now) = expires_at <= now

      # In seconds.
      def life = expires_at - begins_at

      # A number from 0 to 1 that spreads renewals of different certificates.
      def fraction = Rational(@certificate.serial.to_i % 997, 996)

      def renew_at
        begins_at + (life * (RENEWED_AFTER - (JITTER * fraction))).to_f
      end

      # Its name at the authority that has issued it (RFC 9773 §4.1), in two parts; nil if it does not name the authority's key.
      def identifier
        authority = @certificate.authority_key_identifier or return
        serial = OpenSSL::ASN1::Integer(@certificate.serial).to_der.byteslice(2..)
        { authority: encode(authority), serial: encode(serial) }
      rescue OpenSSL::ASN1::ASN1Error
        nil
      end

      # The hosts in the certificate.
      def hosts
        value = @certificate.extensions.find { |extension| extension.oid == SAN }&.value.to_s
        value.split(", ").filter_map { |name| name[/\ADNS:(.*)/, 1] }.map(&:downcase)
      end

      # True if it has the hosts of an order, and no others.
      def for?(order) = hosts.sort == order.hosts.sort

      # True if +key+ is its key.
      def belongs_to?(key) = @certificate.check_private_key(key)

      private

      # base64url without padding (RFC 7515 §2).
      def encode(bytes) = [bytes].pack("m0").tr("+/", "-_").delete("=")
    end
  end
end
