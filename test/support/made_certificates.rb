# frozen_string_literal: true

require "openssl"

module Fairlead
  module Test
    # Makes certificates and revocation lists in which every field can be wrong.
    module MadeCertificates
      DAY = 24 * 3600

      # One time for all lists, so that consecutive lists have the same date.
      NOW = Time.now
      AUTHORITY = { "basicConstraints" => "critical,CA:TRUE", "keyUsage" => "critical,keyCertSign,cRLSign", "subjectKeyIdentifier" => "hash" }.freeze
      CLIENT = { "basicConstraints" => "CA:FALSE", "keyUsage" => "digitalSignature", "extendedKeyUsage" => "clientAuth",
                 "subjectKeyIdentifier" => "hash" }.freeze
      NAMED_KEY = { "authorityKeyIdentifier" => "keyid:always" }.freeze

      # A certificate and its key.
      Made = Struct.new(:certificate, :key) do
        def pem = certificate.to_pem
        def der = certificate.to_der
        def subject = certificate.subject
      end

      class << self
        # Makes a key of this kind.
        def key(kind = :p256)
          case kind
          when :p256, :p384, :p521 then OpenSSL::PKey::EC.generate({ p256: "prime256v1", p384: "secp384r1", p521: "secp521r1" }.fetch(kind))
          when :ed25519 then OpenSSL::PKey.generate_key("ED25519")
          else OpenSSL::PKey::RSA.new(Integer(kind.to_s.delete_prefix("rsa"), 10))
          end
        end

        # Returns an authority; it signs itself without +by+. +change+: extensions, nil to omit one.
        def authority(name, by: nil, change: {}, **options)
          make(name, by, by ? AUTHORITY.merge(NAMED_KEY) : AUTHORITY, change, **options)
        end

        # Returns a client's certificate.
        def client(by:, name: "client", change: {}, **options) = make(name, by, by ? CLIENT.merge(NAMED_KEY) : CLIENT, change, **options)

        # Returns a list in PEM. +revoked+: serial numbers, or pairs of number and reason. Times in days from now.
        def list(by, *revoked, since: -2, ends: 30, version: 1, number: 1, named: true, signer: by.key, extensions: [], digest: "SHA256")
          list = OpenSSL::X509::CRL.new
          list.issuer = by.subject
          list.version = version
          list.last_update = NOW + (since * DAY)
          list.next_update = NOW + (ends * DAY) if ends
          revoked.each { |serial, reason| list.add_revoked(entry(serial, reason)) }
          extend_list(list, by, number, named, extensions) if version == 1
          list.sign(signer, digest).to_pem
        end

        # Returns a name in this kind of string. +bytes+: in its encoding.
        def name_of(kind, bytes)
          value = OpenSSL::ASN1::ASN1Data.new(bytes.b, kind, :UNIVERSAL)
          pair = OpenSSL::ASN1::Sequence([OpenSSL::ASN1::ObjectId("CN"), value])
          OpenSSL::X509::Name.new(OpenSSL::ASN1::Sequence([OpenSSL::ASN1::Set([pair])]).to_der)
        end

        # Returns an extension that needs a section of a configuration file.
        def configured(name, value, section, critical: false)
          factory = OpenSSL::X509::ExtensionFactory.new
          factory.config = OpenSSL::Config.parse(section)
          factory.create_extension(name, value, critical)
        end

        def critical(oid, value = OpenSSL::ASN1::OctetString("x")) = OpenSSL::X509::Extension.new(oid, value, true)

        private

        # The defaults of the options suit nearly every case.
        def make(name, by, usual, change, key: :p256, starts: -1, ends: 30, version: 3, serial: nil, digest: "SHA256",
                 issuer: nil, signer: nil, more: [])
          key = self.key(key) if key.is_a?(Symbol)
          certificate = OpenSSL::X509::Certificate.new
          certificate.version = version - 1
          certificate.serial = serial || (@serial = (@serial || 0x7000) + 1)
          certificate.subject = name.is_a?(String) ? OpenSSL::X509::Name.parse("/CN=#{name}") : name
          certificate.issuer = issuer || by&.subject || certificate.subject
          certificate.public_key = key
          certificate.not_before = Time.now + (starts * DAY)
          certificate.not_after = Time.now + (ends * DAY)
          extend_with(certificate, by&.certificate || certificate, usual.merge(change).compact, more) if version == 3
          signer ||= by&.key || key
          Made.new(certificate.sign(signer, digest), key)
        end

        def extend_with(certificate, issuer, extensions, more)
          factory = OpenSSL::X509::ExtensionFactory.new
          factory.subject_certificate = certificate
          factory.issuer_certificate = issuer
          if extensions["authorityKeyIdentifier"] && issuer.extensions.none? { |one| one.oid == "subjectKeyIdentifier" }
            extensions = extensions.except("authorityKeyIdentifier")
          end
          extensions.each { |name, value| certificate.add_extension(extension(factory, name, value)) }
          more.each { |one| certificate.add_extension(one) }
        end

        def extend_list(list, by, number, named, extensions)
          factory = OpenSSL::X509::ExtensionFactory.new
          factory.issuer_certificate = by.certificate
          list.add_extension(OpenSSL::X509::Extension.new("crlNumber", OpenSSL::ASN1::Integer(number)))
          list.add_extension(factory.create_extension("authorityKeyIdentifier", "keyid:always")) if named
          extensions.each { |one| list.add_extension(one) }
        end

        def extension(factory, name, value) = factory.create_extension(name, value.delete_prefix("critical,"), value.start_with?("critical,"))

        def entry(serial, reason)
          OpenSSL::X509::Revoked.new.tap do |revoked|
            revoked.serial = serial
            revoked.time = Time.now - DAY
            revoked.add_extension(OpenSSL::X509::Extension.new("CRLReason", OpenSSL::ASN1::Enumerated(reason))) if reason
          end
        end
      end
    end
  end
end
