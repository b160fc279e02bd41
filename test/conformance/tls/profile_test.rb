# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rexml/document"
require "support/certificates"

# Scanners' views of the server: it offers nothing outside Mozilla's intermediate profile (version 5.7), and all of the
# profile except finite-field key exchange. With TESTSSL=1 testssl.sh runs too, for a minute; `rake conformance:tls` sets it.
class TlsProfileTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  APP = "run ->(_env) { [200, { 'content-type' => 'text/plain' }, ['hello']] }"

  TLS13 = %w[TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256].freeze
  TLS12 = %w[ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305].freeze
  GROUPS = %w[X25519 P-256 P-384].freeze
  OTHER_GROUPS = %w[X448 P-521 secp224r1 ffdhe2048].freeze

  def test_sslscan_finds_what_the_profile_has
    need("sslscan")
    scan = scan(serve_tls(APP).port)

    assert_equal %w[1.2 1.3], found(scan, "protocol[@enabled='1']", "version")
    assert_equal %w[1.0 1.1 2 3], found(scan, "protocol[@enabled='0']", "version")
    assert_equal TLS13, found(scan, "cipher[@sslversion='TLSv1.3']", "cipher")
    assert_equal TLS12, found(scan, "cipher[@sslversion='TLSv1.2']", "cipher")
    assert_equal ["0"], found(scan, "renegotiation", "supported")
    assert_equal %w[0 0], found(scan, "heartbleed", "vulnerable")
  end

  # sslscan would wait for replies that rustls does not send.
  def test_the_groups_are_those_of_the_profile
    server = serve_tls(APP)

    assert_equal(GROUPS, (GROUPS + OTHER_GROUPS).select { |group| shakes_hands?(server.port, group) })
  end

  def test_sslscan_finds_no_tls12_where_there_is_only_tls13
    need("sslscan")
    scan = scan(serve_tls(APP, query: { min_version: "1.3" }).port)

    assert_equal ["1.3"], found(scan, "protocol[@enabled='1']", "version")
    assert_equal TLS13, found(scan, "cipher", "cipher")
  end

  # Findings about the test certificate and the application, and about the clients' choice of the suite, which the profile
  # recommends.
  APART = %w[cert security_headers HSTS cipher_order].freeze

  if ENV["TESTSSL"]
    def test_testssl_has_nothing_to_complain_of
      need("testssl")
      server = serve_tls(APP)
      output, = Open3.capture2e("testssl", "--color", "0", "--warnings", "off", "--quiet", "--fast", "--jsonfile", server.path("found.json"),
                                "https://127.0.0.1:#{server.port}")
      findings = JSON.parse(File.read(server.path("found.json")))

      assert_operator findings.size, :>, 50, output
      assert_empty(findings.reject { |one| one["id"].start_with?(*APART) || %w[OK INFO LOW WARN].include?(one["severity"]) })
    end
  end

  private

  def need(program)
    skip "#{program} is not installed" unless system("command -v #{program} >/dev/null")
  end

  def scan(port)
    output, status = Open3.capture2("sslscan", "--no-colour", "--no-check-certificate", "--no-groups", "--xml=-", "127.0.0.1:#{port}")
    assert_predicate status, :success?, output
    REXML::Document.new(output[/<\?xml.*/m])
  end

  def shakes_hands?(port, group)
    _, status = Open3.capture2e("openssl", "s_client", "-connect", "127.0.0.1:#{port}", "-groups", group, stdin_data: "")
    status.success?
  end

  def found(scan, path, attribute) = scan.get_elements("//#{path}").map { |element| element[attribute] }.sort
end
