# frozen_string_literal: true

require "test_helper"

class TlsOptionTypesTest < Minitest::Test
  Types = Fairlead::Options::Types

  def test_certificates_are_paths_or_texts
    type = Types::CertificateFiles.new("CERT,KEY")

    assert_equal ["a", "b", nil], type.parse("a,b")
    assert_equal %w[a b c], type.parse(%w[a b c])
    assert_equal "a,b", type.format(type.parse("a,b"))
    places = type.parse(["-----BEGIN CERTIFICATE-----\n", Struct.new(:to_pem).new("key")])
    assert_equal ["-----BEGIN CERTIFICATE-----\n", "key"], places.compact.map { |place| Fairlead::Tls::Store[place] }
    ["a", "a,", %w[a], ["a", 1], [%w[a b]], 1, "a,b,c,d"].each { |value| assert_raises(Types::Invalid, value.inspect) { type.parse(value) } }
  end

  def test_addresses_need_a_host_a_port_and_a_hash
    type = Types::SslAddress.new

    assert_equal "ssl://h:1?cert=a&key=b", type.parse(["h", "1", { cert: "a", key: "b" }])
    [["h", nil, {}], ["h", "x", {}], [1, 1, {}], ["h", 1, "x"]].each { |value| assert_raises(Types::Invalid) { type.parse(value) } }
  end
end
