# frozen_string_literal: true

require "test_helper"

class TlsParametersTest < Minitest::Test
  Parameters = Fairlead::Tls::Parameters
  Invalid = Fairlead::Tls::Invalid

  def test_certificates_and_keys_belong_together_by_their_order
    parameters = parse(key: "a.key", cert: "a.pem", ocsp: "", "cert" => "b.pem", "ocsp" => "b.der", "key" => "b.key")

    assert_equal [["a.pem", "a.key", nil], ["b.pem", "b.key", "b.der"]], parameters.certificates.map(&:to_a)
    assert_empty parse(cert: "", key: "").certificates
    assert_empty parse.certificates
  end

  def test_what_is_not_given_is_not_asked_of_clients
    parameters = parse("no_tlsv1" => "true", "no_tlsv1_1" => "false", "reuse" => "true")

    assert_equal ["none", nil, nil, nil, false], [parameters.verify_mode, parameters.ca, parameters.crl, parameters.key_password_command,
                                                  parameters.tls13_only?]
    assert_predicate parse(min_version: "1.3"), :tls13_only?
    assert_equal %w[force_peer a b], parse(verify_mode: "force_peer", ca: "a", crl: "b").then { |one| [one.verify_mode, one.ca, one.crl] }
  end

  {
    { cert: "a" } => "each cert needs its key (cert: 1, key: 0)", { cert: "", key: "a" } => "the certificate (cert) is missing",
    { cert: "a", key: "" } => "the key of a is missing", { ocsp: "a" } => "there are more OCSP responses than certificates",
    { verify_mode: "some" } => "verify_mode must be one of none, peer, force_peer, not some",
    { verify_mode: "peer" } => "verify_mode=peer needs ca, the file with those who may issue the certificates of clients",
    { crl: "a" } => "crl needs verify_mode=peer or verify_mode=force_peer", { min_version: "1.1" } => "min_version must be one of 1.2, 1.3, not 1.1",
    { protocols: "x" } => "protocols: min_version=1.2 or min_version=1.3 says which versions are offered"
  }.each do |given, message|
    define_method(:"test_#{given}_is_refused") do
      assert_equal message, assert_raises(Invalid) { parse(**given) }.message
    end
  end

  def test_each_name_that_only_puma_knows_has_a_reason
    Parameters::REFUSED.each do |name, reason|
      assert_equal "#{name}: #{reason}", assert_raises(Invalid) { parse(name => "x") }.message
    end
  end

  private

  def parse(pairs = {}, **more) = Parameters.new([*more, *pairs].map { |name, value| [name.to_s, value] })
end
