# frozen_string_literal: true

require_relative "made_certificates"

module Fairlead
  module Test
    # Valid and invalid chains of client certificates, each with the authorities and revocation lists of a server.
    class ClientChains
      include Enumerable

      # +sent+: the client's certificate and the others that it sends; +ca+: authorities; +crl+: lists in PEM, or nil.
      Case = Struct.new(:name, :sent, :ca, :crl) do
        def client = sent.first

        # Returns OpenSSL's reason for refusing the client, or nil if OpenSSL accepts it.
        def openssl
          store = OpenSSL::X509::Store.new
          ca.each { |one| store.add_cert(one.certificate) }
          crl&.each { |list| store.add_crl(OpenSSL::X509::CRL.new(list)) }
          store.purpose = OpenSSL::X509::PURPOSE_SSL_CLIENT
          store.flags = OpenSSL::X509::V_FLAG_CRL_CHECK | OpenSSL::X509::V_FLAG_CRL_CHECK_ALL if crl
          store.error_string unless store.verify(client.certificate, sent.drop(1).map(&:certificate))
        rescue OpenSSL::X509::CertificateError => e
          e.message # for a name that is not text
        end
      end

      M = MadeCertificates

      def initialize
        @cases = []
        @root = M.authority("root")
        @middle = M.authority("middle", by: @root)
        private_methods(false).grep(/\Aadd_/).sort.each { |name| send(name) }
      end

      def each(&) = @cases.each(&)

      private

      attr_reader :root, :middle

      def one(name, *sent, ca: [root], crl: nil) = @cases << Case.new(name, sent, ca, crl)

      # A client of +authority+. The authority's certificate is sent too, unless it is trusted.
      def by(name, authority, ca: [root], crl: nil, **options)
        one(name, M.client(by: authority, **options), *(ca.include?(authority) ? [] : [authority]), ca: ca, crl: crl)
      end

      def add_chains
        by("issued by a root", root)
        by("an intermediate that is sent", middle)
        by("an intermediate that is trusted, with its root", middle, ca: [root, middle])
        third = M.authority("third", by: M.authority("second", by: middle))
        second = third.certificate.issuer
        one("an intermediate is missing", M.client(by: third), third, middle)
        one("no intermediate is sent", M.client(by: middle))
        by("an unknown root", M.authority("unknown"), ca: [root])
        by("a root of the right name with another key", M.authority("root"), ca: [root])
        by("the same without key identifiers", M.authority("root", change: { "subjectKeyIdentifier" => nil }), ca: [root])
        by("only the intermediate is trusted", middle, ca: [middle])
        one("only the intermediate is trusted, and the root is sent", M.client(by: middle), middle, root, ca: [middle])
        one("another chain's certificates in between", M.client(by: middle), M.authority(second.to_a[0][1]), middle, M.authority("x"))
        one("the root is sent too", M.client(by: middle), middle, root)
      end

      def add_long_chains
        links = [root]
        8.times { |number| links << M.authority("link #{number}", by: links.last) }
        [5, 6, 7].each do |count|
          one("#{count} intermediates", M.client(by: links[count]), *links[1..count].reverse)
          one("#{count} intermediates in reverse", M.client(by: links[count]), *links[1..count]) if count < 7
        end
        one("9 certificates, most of them idle", M.client(by: root), *links[1..8])
      end

      def add_times
        by("the client's has expired", root, ends: -0.5)
        by("the client's is not valid yet", root, starts: 1)
        by("an intermediate has expired", M.authority("old", by: root, ends: -0.5))
        by("an intermediate is not valid yet", M.authority("new", by: root, starts: 1))
        old = M.authority("root of old", ends: -0.5)
        by("the root has expired", old, ca: [old])
        new = M.authority("root to come", starts: 1)
        by("the root is not valid yet", new, ca: [new])
        key = M.key
        pair = [M.authority("renewed", key: key, ends: -0.5), M.authority("renewed", key: key)]
        by("a renewed root beside the expired one", pair[1], ca: pair)
      end

      def add_renewed_intermediates
        key = M.key
        made = ->(**options) { M.authority("renewed", by: root, key: key, **options) }
        valid, old, new, other = [{}, { ends: -0.5 }, { starts: 1 }, { key: M.key }].map { |options| made.call(**options) }
        { "an expired intermediate" => [old, valid], "an intermediate that is not valid yet" => [new, valid],
          "both of them" => [old, new, valid], "an expired one of another key" => [other, old, valid] }.each do |name, sent|
          one("#{name} before the renewed one", M.client(by: valid), *sent)
          one("#{name} behind the renewed one", M.client(by: valid), *sent.reverse)
        end
        one("an expired intermediate, and one that is not valid yet", M.client(by: valid), old, new)
        one("an expired intermediate is trusted, and the renewed one sent", M.client(by: valid), valid, ca: [root, old])
      end

      def add_authorities
        { "a client's certificate as issuer" => { "basicConstraints" => "CA:FALSE" },
          "an issuer without keyCertSign" => { "keyUsage" => "critical,cRLSign" },
          "an issuer without basic constraints" => { "basicConstraints" => nil },
          "an issuer without basic constraints and key usage" => { "basicConstraints" => nil, "keyUsage" => nil },
          "an issuer without key usage" => { "keyUsage" => nil }, "an issuer for servers only" => { "extendedKeyUsage" => "serverAuth" },
          "an issuer for clients only" => { "extendedKeyUsage" => "clientAuth" },
          "an issuer without key identifier" => { "subjectKeyIdentifier" => nil } }.each do |name, change|
          by("#{name}, sent", M.authority("odd", by: root, change: change))
          odd = M.authority("odd root", change: change)
          by("#{name}, trusted", odd, ca: [odd])
        end
        first = M.authority("first version", version: 1)
        by("a root of version 1", first, ca: [first])
        by("an intermediate of version 1", M.authority("first version", by: root, version: 1))
      end

      # rustls ignores the extensions of a trusted certificate.
      def add_critical_extensions_of_roots
        { "an unknown extension" => "1.2.3.4", "another name for the issuer" => "issuerAltName", "policies" => "certificatePolicies",
          "constraints on policies" => "policyConstraints", "rules for any policy" => "inhibitAnyPolicy" }.each do |kind, name|
          value = { "certificatePolicies" => "\x30\x06\x30\x04\x06\x02\x2a\x03", "policyConstraints" => "\x30\x03\x80\x01\x00",
                    "inhibitAnyPolicy" => "\x02\x01\x00", "issuerAltName" => "\x30\x03\x82\x01x" }.fetch(name, "\x05\x00").b
          odd = M.authority("odd root", more: [OpenSSL::X509::Extension.new(name, value, true)])
          by("a root with #{kind}, which is critical", odd, ca: [odd])
        end
        between = M.authority("odd", by: root, more: [M.critical("1.2.3.4")])
        by("a trusted intermediate with an unknown extension, which is critical", between, ca: [root, between])
      end

      def add_lengths
        short = M.authority("short", change: { "basicConstraints" => "critical,CA:TRUE,pathlen:0" })
        by("a root for no intermediates, without one", short, ca: [short])
        below = M.authority("below", by: short)
        one("a root for no intermediates, with one", M.client(by: below), below, ca: [short])
        narrow = M.authority("narrow", by: root, change: { "basicConstraints" => "critical,CA:TRUE,pathlen:0" })
        deep = M.authority("deep", by: narrow)
        one("an intermediate for no others, with another one", M.client(by: deep), deep, narrow)
        self_issued = M.authority("short", by: short)
        one("a root for no intermediates, with one of its own name", M.client(by: self_issued), self_issued, ca: [short])
        own = M.authority("narrow", by: narrow)
        one("an intermediate for no others, with one of its own name", M.client(by: own), own, narrow)
        { "-1" => "\xff", "-32,640" => "\x80\x80", "255" => "\x00\xff" }.each do |number, bytes|
          size = bytes.bytesize
          length = OpenSSL::X509::Extension.new("basicConstraints", "\x30#{(size + 5).chr}\x01\x01\xff\x02#{size.chr}#{bytes}".b, true)
          { "root" => nil, "intermediate" => root }.each do |kind, by|
            odd = M.authority("of odd length", by: by, change: { "basicConstraints" => nil }, more: [length])
            by("#{kind} for #{number} intermediates", odd, ca: [by || odd])
          end
        end
      end

      def add_constraints
        named = M.authority("named", by: root, change: { "nameConstraints" => "critical,permitted;DNS:example.com" })
        by("a name that is permitted", named, change: { "subjectAltName" => "DNS:a.example.com" })
        by("a name that is not permitted", named, change: { "subjectAltName" => "DNS:a.example.org" })
        trusted = M.authority("named root", change: { "nameConstraints" => "critical,permitted;DNS:example.com" })
        by("a name that the root does not permit", trusted, ca: [trusted], change: { "subjectAltName" => "DNS:a.example.org" })
        sent = M.authority("between", by: trusted)
        one("the same, with the intermediate trusted", M.client(by: sent, change: { "subjectAltName" => "DNS:a.example.org" }), ca: [sent, trusted])
      end

      def add_clients
        { "for servers only" => { "extendedKeyUsage" => "serverAuth" }, "for any purpose" => { "extendedKeyUsage" => "anyExtendedKeyUsage" },
          "for no purpose in particular" => { "extendedKeyUsage" => nil }, "to encrypt keys only" => { "keyUsage" => "keyEncipherment" },
          "to agree on keys only" => { "keyUsage" => "keyAgreement" }, "without key usage" => { "keyUsage" => nil },
          "of a server, for Netscape" => { "nsCertType" => "server" }, "of a client, for Netscape" => { "nsCertType" => "client" },
          "of an authority" => { "basicConstraints" => "critical,CA:TRUE", "keyUsage" => "keyCertSign,digitalSignature" } }.each do |name, change|
          by("a certificate #{name}", root, change: change)
        end
        by("an unknown critical extension", root, more: [M.critical("1.2.3.4.5")])
        by("an unknown extension", root, more: [OpenSSL::X509::Extension.new("1.2.3.4.5", OpenSSL::ASN1::OctetString("x"))])
        by("a client of version 1", root, version: 1)
        own = M.client(by: nil, name: "own")
        one("a client that signs itself and is trusted", own, ca: [own, root])
        own = M.client(by: nil, name: "own authority", change: { "basicConstraints" => "CA:TRUE", "keyUsage" => nil })
        one("a client that signs itself, is trusted and an authority", own, ca: [own, root])
        issued = M.client(by: M.authority("elsewhere"))
        one("a client that is trusted, and its issuer is not", issued, ca: [issued, root])
        known = M.client(by: middle)
        one("a client that is trusted, and its intermediate is sent", known, middle, ca: [known, root])
        one("a client that is trusted, and its intermediate is missing", known, ca: [known, root])
      end
    end
  end
end

require_relative "client_chains/constraints"
require_relative "client_chains/keys"
require_relative "client_chains/lists"
