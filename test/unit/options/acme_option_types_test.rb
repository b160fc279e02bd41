# frozen_string_literal: true

require "test_helper"

class AcmeOptionTypesTest < Minitest::Test
  Invalid = Fairlead::Options::Types::Invalid
  AGREED = { terms_of_service_agreed: true }.freeze

  def test_the_file_and_the_command_line_say_the_same
    in_file = order("shop.example", "www.shop.example", contact: "admin@shop.example", challenge: "tls_alpn-01")
    on_line = parse("shop.example,www.shop.example?terms_of_service_agreed=true&contact=admin@shop.example&challenge=tls-alpn-01")

    assert_equal in_file, on_line
    assert_equal %w[shop.example www.shop.example], in_file.hosts
    assert_equal ["mailto:admin@shop.example"], in_file.contact
  end

  def test_the_authority_is_lets_encrypt_unless_another_one_is_named
    assert_equal "https://acme-v02.api.letsencrypt.org/directory", order("a.example").directory
    assert_equal "ca.example:14000", order("a.example", directory: "https://ca.example:14000/dir").authority
  end

  def test_hosts_are_names_in_lower_case
    assert_equal %w[a.example xn--bcher-kva.example], order("A.Example", "a.example", "xn--bcher-kva.example").hosts
    ["*.a.example", "192.0.2.1", "[::1]", "a b", "-a.example", "a..example", "../a", "bücher.example", "", "a.#{"x" * 64}"].each do |host|
      assert_raises(Invalid, host) { order(host) }
    end
  end

  def test_whoever_orders_agrees_to_the_terms
    assert_match(/needs terms_of_service_agreed/, assert_raises(Invalid) { parse(["a.example"]) }.message)
    assert_match(/needs terms_of_service_agreed/, assert_raises(Invalid) { parse("a.example?terms_of_service_agreed=false") }.message)
  end

  def test_each_mistake_has_its_message
    {
      { directory: "http://ca.example" } => /no https/,
      { contact: "admin" } => /no address of mail/,
      { challenge: "dns-01" } => /http-01 or tls-alpn-01/,
      { eab_kid: "a" } => /together/,
      { eab_kid: "a", eab_hmac: "not base64!" } => /base64url/,
      { email: "a@b.example" } => /does not know email/
    }.each { |keywords, text| assert_match(text, assert_raises(Invalid) { order("a.example", **keywords) }.message) }
  end

  def test_the_file_behind_the_authority_is_looked_for_where_the_server_runs
    order = order("a.example", ca: "Rakefile")

    assert_equal File.join(ROOT, "Rakefile"), type.resolve(order) { ROOT }.ca
    assert_match(/cannot be read/, assert_raises(Invalid) { type.resolve(order) { "/nowhere" } }.message)
  end

  def test_a_secret_is_not_shown
    shown = type.format(order("a.example", eab_kid: "kid", eab_hmac: "c2VjcmV0"))

    assert_match(/\Aa\.example\?.*eab_kid=kid&eab_hmac=\(set\)/, shown)
    refute_match(/c2VjcmV0/, shown)
  end

  def test_several_orders_are_several_certificates
    orders = [["a.example", AGREED], ["b.example", AGREED]].map { |given| parse(given) }
    configuration = Fairlead::Configuration.from_options(acme: orders, bind: ["ssl://127.0.0.1:0"])

    assert_equal [["a.example"], ["b.example"]], configuration.acme.map(&:hosts)
    assert_empty configuration.warnings
  end

  def test_two_certificates_of_an_authority_cannot_have_the_same_name
    error = assert_raises(Fairlead::ConfigurationError) do
      Fairlead::Configuration.from_options(acme: [order("a.example"), order("a.example", "b.example")])
    end

    assert_match(/a.example begins two certificates/, error.message)
  end

  def test_a_folder_for_nothing_is_told
    warnings = Fairlead::Configuration.from_options(acme_dir: "state").warnings

    assert_match(/acme_dir.*has no effect without acme/, warnings.first)
  end

  private

  def type = Fairlead::Options[:acme].type

  def parse(value) = type.parse(value)

  def order(*hosts, **keywords) = parse([*hosts, { **AGREED, **keywords }])
end
