# frozen_string_literal: true

module Fairlead
  module Test
    # Kinds of keys and names, and authorities with a new key or name.
    class ClientChains
      # Kinds of string (ASN.1 tag), each with bytes in its encoding.
      STRINGS = { "UTF8String" => [12, "J\u00f6rg"], "PrintableString" => [19, "Joerg"], "T61String" => [20, "J\xf6rg".b],
                  "IA5String" => [22, "joerg"], "NumericString" => [18, "12 34"], "UniversalString" => [28, "J\u00f6rg".encode("UTF-32BE").b],
                  "BMPString" => [30, "J\u00f6rg, \u4f60".encode("UTF-16BE").b] }.freeze

      private

      def add_keys
        { "RSA of 2,048 bits" => :rsa2048, "RSA of 1,024 bits" => :rsa1024, "P-384" => :p384, "P-521" => :p521 }.each do |name, kind|
          authority = M.authority("of #{kind}", key: kind)
          by("an authority with #{name}", authority, ca: [authority])
        end
        by("a client with Ed25519", root, key: :ed25519)
        by("a client with P-521", root, key: :p521)
        by("a signature with SHA-1", root, digest: "SHA1")
        by("a signature with SHA-512", root, digest: "SHA512")
        forged = M.client(by: root, signer: M.key)
        one("a forged signature", forged)
      end

      def add_names
        STRINGS.each { |kind, (tag, bytes)| by("a name in #{kind}", root, name: M.name_of(tag, bytes)) }
        printable = M.authority(M.name_of(19, "Kind"))
        by("an issuer's name in another kind of string", printable, ca: [printable], issuer: M.name_of(12, "Kind"))
        by("an issuer's name in another case", printable, ca: [printable], issuer: M.name_of(19, "KIND"))
      end

      def add_new_keys
        bare = { "subjectKeyIdentifier" => nil }
        former, present = Array.new(2) { M.authority("rollover") }
        [[former, "former"], [present, "present"]].each { |one, name| by("two authorities of one name, the #{name} key", one, ca: [former, present]) }
        former, present = Array.new(2) { M.authority("rollover", change: bare) }
        [[former, "former"], [present, "present"]].each do |one, name|
          by("two authorities of one name without key identifiers, the #{name} key", one, ca: [former, present])
        end
        former, present = Array.new(2) { M.authority("rollover") }
        bridge = M.authority("rollover", by: former, key: present.key)
        one("the new key, signed with the old one", M.client(by: present), bridge, ca: [former])
        cross = M.authority("middle", by: M.authority("elsewhere"), key: middle.key)
        one("a cross certificate of an unknown root comes first", M.client(by: middle), cross, middle)
      end
    end
  end
end
