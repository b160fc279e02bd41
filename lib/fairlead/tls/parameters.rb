# frozen_string_literal: true

module Fairlead
  module Tls
    # The parameters in the query of an `ssl://` address. They have Puma's names, if there are any. Reads no files.
    class Parameters
      # Parameters for several certificates, which may be repeated: the first key belongs to the first certificate.
      LISTS = %w[cert cert_pem key key_pem ocsp].freeze

      # All known parameters of TLS; the address handles the parameters of TCP.
      NAMES = [*LISTS, "ca", "crl", "verify_mode", "min_version", "no_tlsv1", "no_tlsv1_1", "key_password_command", "reuse"].freeze

      # Parameters of Puma for other libraries, and the advice for each.
      OPENSSL = "the cipher suites are not chosen by OpenSSL's names: all that are offered are modern ones (min_version=1.3 leaves only " \
                "those of TLS 1.3)"
      JAVA = "there are no keystores; convert it with `openssl pkcs12 -in STORE -out cert.pem -clcerts -nokeys` and `openssl pkcs12 -in " \
             "STORE -out key.pem -nocerts -nodes`, and give cert=cert.pem and key=key.pem"
      REFUSED = {
        "ssl_cipher_filter" => OPENSSL, "ssl_ciphersuites" => OPENSSL, "ssl_cipher_list" => OPENSSL, "cipher_suites" => OPENSSL,
        "protocols" => "min_version=1.2 or min_version=1.3 says which versions are offered",
        "verification_flags" => "give a revocation list with crl; certificates are always checked in full",
        **%w[keystore keystore_pass keystore_type truststore truststore_pass truststore_type].to_h { |name| [name, JAVA] }
      }.freeze

      VERIFY_MODES = %w[none peer force_peer].freeze
      VERSIONS = %w[1.2 1.3].freeze

      # The certificates, in the order in which they were given: Certificate.
      attr_reader :certificates

      # +pairs+: [[name, value], …]. Raises Invalid.
      def initialize(pairs)
        refuse(pairs)
        @values = pairs.to_h
        @certificates = certificates_of(pairs)
        check
      end

      # The request for client certificates: "none", "peer" (a client may have none) or "force_peer".
      def verify_mode = @values.fetch("verify_mode", "none")

      # True if TLS 1.2 is not offered.
      def tls13_only? = @values["min_version"] == "1.3"

      # A path or nil: the issuers of client certificates, the revoked ones; a command, or nil.
      def ca = given("ca")
      def crl = given("crl")
      def key_password_command = given("key_password_command")

      private

      def given(name)
        value = @values[name]
        value unless value.nil? || value.empty?
      end

      def refuse(pairs)
        name, = pairs.find { |one, _| REFUSED.key?(one) }
        raise Invalid, "#{name}: #{REFUSED.fetch(name)}" if name
      end

      # An empty value skips a certificate: ocsp=&ocsp=second.der.
      def certificates_of(pairs)
        chains = list(pairs, "cert", "cert_pem")
        keys = list(pairs, "key", "key_pem")
        responses = list(pairs, "ocsp")
        raise Invalid, "each cert needs its key (cert: #{chains.size}, key: #{keys.size})" if chains.size != keys.size
        raise Invalid, "there are more OCSP responses than certificates" if responses.size > chains.size

        chains.zip(keys, responses).reject { |chain, key, _| chain.empty? && key.empty? }.map do |chain, key, response|
          raise Invalid, chain.empty? ? "the certificate (cert) is missing" : "the key of #{chain} is missing" if chain.empty? || key.empty?

          Certificate.new(chain, key, (response unless response.to_s.empty?))
        end
      end

      def list(pairs, *names) = pairs.select { |name, _| names.include?(name) }.map(&:last)

      def check
        one_of("verify_mode", VERIFY_MODES)
        one_of("min_version", VERSIONS)
        asked = verify_mode != "none"
        raise Invalid, "verify_mode=#{verify_mode} needs ca, the file with those who may issue the certificates of clients" if asked && ca.nil?
        raise Invalid, "crl needs verify_mode=peer or verify_mode=force_peer" if crl && !asked
      end

      def one_of(name, words)
        value = given(name)
        raise Invalid, "#{name} must be one of #{words.join(", ")}, not #{value}" unless value.nil? || words.include?(value)
      end
    end
  end
end
