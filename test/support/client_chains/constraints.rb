# frozen_string_literal: true

module Fairlead
  module Test
    # Authorities with name constraints, and clients with constrained names in their subject.
    class ClientChains
      # Name constraints => subjects of clients.
      SUBJECTS = {
        "permitted;DNS:example.com" => %w[/CN=a.example.com /CN=A.Example.COM /CN=example.com /CN=evil.org /CN=evilexample.com /CN=client
                                          /CN=a.example.com/CN=evil.org /CN=evil.org/CN=a.example.com /CN=evil.org. /CN=evil_host.org
                                          /CN=-evil.org /O=evil.org],
        "permitted;DNS:.example.com" => %w[/CN=a.example.com /CN=example.com],
        "permitted;DNS:example.com,permitted;DNS:example.net" => %w[/CN=a.example.net /CN=evil.org],
        "excluded;DNS:example.com" => %w[/CN=a.example.com /CN=example.com /CN=example.org /CN=client],
        "permitted;DNS:example.com,excluded;DNS:b.example.com" => %w[/CN=a.example.com /CN=a.b.example.com],
        "permitted;email:good.com" => %w[/CN=x/emailAddress=a@good.com /CN=x/emailAddress=a@GOOD.com /CN=x/emailAddress=a@evil.com
                                         /CN=x/emailAddress=a@sub.good.com /CN=x/emailAddress=good.com /CN=x /CN=evil.org
                                         /emailAddress=a@good.com/emailAddress=a@evil.com /CN=x/emailAddress=a@good.com@evil.com],
        "permitted;email:.good.com" => %w[/CN=x/emailAddress=a@sub.good.com /CN=x/emailAddress=a@good.com /CN=x/emailAddress=a@evil.com],
        "permitted;email:ann@good.com" => %w[/CN=x/emailAddress=ann@good.com /CN=x/emailAddress=Ann@good.com /CN=x/emailAddress=bob@good.com],
        "excluded;email:evil.com" => %w[/CN=x/emailAddress=a@evil.com /CN=x/emailAddress=a@good.com],
        "permitted;IP:10.0.0.0/255.0.0.0" => %w[/CN=evil.org /CN=x/emailAddress=a@evil.com]
      }.freeze

      private

      def constrained(constraints, by: root) = M.authority("constrained", by: by, change: { "nameConstraints" => constraints })

      # An intermediate and an anchor with these constraints.
      def each_constrained(constraints)
        yield constrained(constraints), [root], "an intermediate with #{constraints}"
        anchor = constrained(constraints, by: nil)
        yield anchor, [anchor], "an anchor with #{constraints}"
      end

      def add_subjects
        SUBJECTS.each do |constraints, subjects|
          each_constrained("critical,#{constraints}") do |authority, ca, title|
            subjects.each { |text| by("#{title}: #{text}", authority, ca: ca, name: OpenSSL::X509::Name.parse(text)) }
          end
        end
        by("constraints that are not critical", constrained("permitted;DNS:example.com"), name: "evil.org")
      end

      def add_subjects_beside_alternative_names
        each_constrained("critical,permitted;DNS:example.com") do |authority, ca, title|
          by("#{title}: a permitted alternative name", authority, ca: ca, name: "evil.org", change: { "subjectAltName" => "DNS:a.example.com" })
          by("#{title}: an alternative name of another kind", authority, ca: ca, name: "evil.org", change: { "subjectAltName" => "email:a@b.c" })
        end
      end

      def add_subjects_in_odd_strings
        email = ->(kind) { OpenSSL::X509::Name.new([["emailAddress", "a@good.com", kind]]) }
        each_constrained("critical,permitted;DNS:example.com") do |authority, ca, title|
          { "a host in 16-bit units" => [30, "evil.org".encode("UTF-16BE")], "a permitted one" => [30, "a.example.com".encode("UTF-16BE")],
            "a NUL behind it" => [12, "a.example.com\0"], "a NUL behind another one" => [12, "evil.org\0"],
            "a NUL in it" => [12, "evil.org\0.example.com"],
            "a string of bits" => [3, "\0evil.org"] }.each do |kind, (tag, bytes)|
            by("#{title}: #{kind}", authority, ca: ca, name: M.name_of(tag, bytes))
          end
        end
        each_constrained("critical,permitted;email:good.com") do |authority, ca, title|
          by("#{title}: an address in UTF-8", authority, ca: ca, name: email.call(OpenSSL::ASN1::UTF8STRING))
        end
      end

      def add_subjects_of_authorities
        each_constrained("critical,permitted;email:good.com,permitted;DNS:example.com") do |authority, ca, title|
          { "/CN=x/emailAddress=a@good.com" => "a permitted", "/CN=x/emailAddress=a@evil.com" => "another",
            "/CN=evil.org" => "no" }.each do |text, kind|
            below = M.authority(OpenSSL::X509::Name.parse(text), by: authority)
            one("#{title}: an authority below with #{kind} address", M.client(by: below), below, *([authority] - ca), ca: ca)
          end
        end
      end

      # Constraints that our library cannot compare.
      def add_other_constraints
        { "permitted;email:good.com" => "email:a@good.com", "permitted;URI:.example.com" => "URI:http://a.example.com/" }.each do |constraints, name|
          by("an alternative name #{name[/\w+/]} that is permitted", constrained("critical,#{constraints}"), change: { "subjectAltName" => name })
        end
        factory = OpenSSL::X509::ExtensionFactory.new
        factory.config = OpenSSL::Config.parse("[here]\nO=Works\n")
        constraint = factory.create_extension("nameConstraints", "permitted;dirName:here", true)
        by("a subject that is permitted", M.authority("constrained", by: root, more: [constraint]), name: OpenSSL::X509::Name.parse("/O=Works/CN=x"))
      end
    end
  end
end
