# frozen_string_literal: true

require "test_helper"
require "json"
require "support/certificates"
require "support/made_certificates"

# Client certificates: the accepted ones, their data in the env, and the alerts for refused ones.
class ClientCertificatesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  Authority = Fairlead::Test::Authority
  VERSIONS = %w[1.2 1.3].freeze

  APP = <<~RUBY
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.select { |name, _| name.start_with?("SSL_") })]] }
  RUBY

  def test_each_gets_what_is_right
    revoked = Authority.usual.client("/CN=revoked")
    files = { "ca.crl" => Authority.usual.revoke(revoked) }
    optional = serve_tls(APP, files: files, query: { verify_mode: "peer", ca: "ca.pem", crl: "ca.crl" })
    required = serve_tls(APP, files: files, query: { verify_mode: "force_peer", ca: "ca.pem", crl: "ca.crl" })
    good = Authority.usual.client

    VERSIONS.each do |version|
      [optional, required].each do |server|
        assert_equal "SUCCESS", verified(server, good, version)
        assert_refused(/alert certificate expired/, server, Authority.usual.client("/CN=expired", ends: -0.5), version)
        assert_refused(/alert certificate revoked/, server, revoked, version)
        assert_refused(/alert unknown ca/, server, Authority.other.client, version)
      end
      assert_equal "NONE", verified(optional, nil, version)
      assert_refused(/alert certificate required|alert handshake failure/, required, nil, version)
    end
    { "Expired" => optional, "Revoked" => optional, "UnknownIssuer" => required }.each do |reason, server|
      assert_logged(/no TLS handshake with 127\.0\.0\.1:\d+ \(invalid peer certificate: .*#{reason}/i, server)
    end
    assert_logged(/no TLS handshake with 127\.0\.0\.1:\d+ \(.*no certificate/i, required)
  end

  def test_names_are_written_as_openssl_writes_them
    subject = [%w[C DE], ["O", "Works, \"Inc.\"+"], ["OU", " a;b<c>d\\ "], ["CN", "#J\u00f6rg"], ["emailAddress", "j@example.com"], ["UID", "x=1"]]
    pair = client_named(subject)
    server = serve_tls(APP, query: { verify_mode: "peer", ca: "ca.pem" })
    env = JSON.parse(tls_get(server.port, pair: pair))

    assert_equal pair.certificate.subject.to_s(OpenSSL::X509::Name::RFC2253), env["SSL_CLIENT_S_DN"]
    assert_equal "CN=Fairlead test authority", env["SSL_CLIENT_I_DN"]
    assert_equal pair.certificate.serial.to_s(16), env["SSL_CLIENT_SERIAL"].sub(/\A0(?=.)/, "")
    assert_equal pair.certificate.to_der, OpenSSL::X509::Certificate.new(env["SSL_CLIENT_CERT"]).to_der
  end

  # A handshake has room for 64 KiB of authority names.
  def test_a_file_with_very_many_authorities_is_no_obstacle
    others = Array.new(300) { |number| Fairlead::Test::MadeCertificates.authority("#{"x" * 300}#{number}").pem }
    server = serve_tls(APP, files: { "ca.pem" => [Authority.usual.pem, *others].join }, query: { verify_mode: "force_peer", ca: "ca.pem" })

    VERSIONS.each { |version| assert_equal "SUCCESS", verified(server, Authority.usual.client, version) }
    assert_logged(/ca\.pem: the names of the authorities are too long for a handshake/, server)
  end

  def test_a_certificate_with_thousands_of_purposes_makes_a_short_line
    server = serve_tls(APP, query: { verify_mode: "peer", ca: "ca.pem" })
    purposes = OpenSSL::ASN1::Sequence(Array.new(9_000) { |number| OpenSSL::ASN1::ObjectId("1.2.#{number + 300}") })
    extension = OpenSSL::X509::Extension.new("extendedKeyUsage", purposes, false)
    made = Fairlead::Test::MadeCertificates
    pair = made.client(by: made::Made.new(*Authority.usual.itself.to_a), change: { "extendedKeyUsage" => nil }, more: [extension])

    assert_refused(/unsupported certificate/, server, pair, "1.3")
    assert_logged(/no TLS handshake with \S+ \(invalid peer certificate: .*key usage/i, server)
    assert_operator server.stderr.lines.map(&:bytesize).max, :<, 1_000
  end

  def test_a_list_that_cannot_be_used_is_refused_with_its_name_and_the_reason
    made = Fairlead::Test::MadeCertificates
    ours = made::Made.new(*Authority.usual.itself.to_a)
    { [OpenSSL::X509::Extension.new("deltaCRL", OpenSSL::ASN1::Integer(1), true)] => /critical extension that is not supported/,
      [made.critical("1.2.3.4")] => /critical extension that is not supported/,
      [made.critical("issuingDistributionPoint", OpenSSL::ASN1::Sequence([OpenSSL::ASN1::Boolean(true, 4, :IMPLICIT)]))] =>
        /certificates of other authorities/,
      [made.critical("issuingDistributionPoint", OpenSSL::ASN1::Sequence([OpenSSL::ASN1::ASN1Data.new([], 0, :CONTEXT_SPECIFIC)]))] =>
        /its distribution point has no name that can be read/ }.each do |extensions, reason|
      files = { "ca.crl" => made.list(ours, extensions: extensions) }
      server = launch_tls(APP, files: files, query: { verify_mode: "peer", ca: "ca.pem", crl: "ca.crl" })

      assert_equal 1, server.wait_exit.exitstatus
      assert_match(/ca\.crl: a revocation list cannot be used: .*#{reason}/, server.stderr)
    end
  end

  def test_authorities_and_lists_that_let_nobody_in_are_told_at_the_start
    made = Fairlead::Test::MadeCertificates
    odd = made.authority("odd", more: [made.critical("1.2.3.4.5")])
    ours = made::Made.new(*Authority.usual.itself.to_a)
    files = { "ca.pem" => Authority.usual.pem + odd.pem, "ca.crl" => made.list(ours, digest: "SHA1") + made.list(odd) }
    server = serve_tls(APP, files: files, query: { verify_mode: "peer", ca: "ca.pem", crl: "ca.crl" })

    assert_logged(/ca\.pem: a certificate of an authority has a critical extension that is not supported; its clients are refused/, server)
    assert_logged(/ca\.crl: the revocation list of #{ours.subject.to_s(OpenSSL::X509::Name::RFC2253)} is signed .* such as SHA-1/, server)
    assert_equal 1, server.log.scan("the revocation list of").size
    assert_refused(/unknown ca/, server, Authority.usual.client, "1.3")
  end

  private

  def verified(server, pair, version) = JSON.parse(tls_get(server.port, pair: pair, version: version)).fetch("SSL_CLIENT_VERIFY")

  # In TLS 1.3 the client gets the alert when it reads.
  def assert_refused(alert, server, pair, version)
    error = assert_raises(OpenSSL::SSL::SSLError) { tls_get(server.port, pair: pair, version: version) }
    assert_match(alert, error.message)
  end

  def client_named(parts)
    name = OpenSSL::X509::Name.new(parts.map { |type, value| [type, value, OpenSSL::ASN1::UTF8STRING] })
    Authority.usual.client(name, serial: 0xfedc_ba98_7654_3210_fedc)
  end
end
