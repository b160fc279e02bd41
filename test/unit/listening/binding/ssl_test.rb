# frozen_string_literal: true

require "test_helper"

class SslBindingTest < Minitest::Test
  Ssl = Fairlead::Binding::Ssl

  def test_texts_do_not_stay_in_the_address
    binding = Fairlead::Binding.parse("ssl://h:1?cert_pem=-----BEGIN%20X&backlog=5&key_pem=-----BEGIN%20Y")

    assert_match(/\Assl:\/\/h:1\?cert=store%3A\d+&backlog=5&key=store%3A\d+\z/, binding.address)
    assert_equal ["-----BEGIN X", "-----BEGIN Y"], binding.tls.certificates.first.to_a.compact.map { |place| Fairlead::Tls::Store[place] }
    assert_equal binding.address, Fairlead::Binding.parse(binding.address).address
    refute_includes Fairlead::Configuration.embedded(bind: ["ssl://h:1?cert_pem=-----BEGIN%20X&key_pem=-----BEGIN%20Y"]).bind.first, "BEGIN"
  end

  def test_the_address_of_pumas_arguments
    assert_equal "ssl://[::1]:1?cert=a.pem&key=a.key&no_tlsv1=true", Ssl.address_for("::1", 1, { cert: "a.pem", key: "a.key", no_tlsv1: true })
    assert_equal "ssl://h:1?cert=a&cert=b&key=c&key=d", Ssl.address_for("h", 1, { "cert" => %w[a b], "key" => %w[c d], ca: nil })
    assert_equal "ssl://h:1", Ssl.address_for("h", 1, {})
  end

  def test_a_free_port_is_inherited_by_the_very_same_address_only
    one, other = %w[none peer].map { |mode| Fairlead::Binding.parse("ssl://127.0.0.1:0?cert=a&key=b&ca=c&verify_mode=#{mode}") }
    listener = Struct.new(:binding, :port, :address).new(one.address, 0, { host: "127.0.0.1" })

    assert one.covers?(listener)
    refute other.covers?(listener)
    listener.binding = "ssl://127.0.0.1:443?cert=x&key=y"
    assert Fairlead::Binding.parse("ssl://127.0.0.1:443?cert=a&key=b").covers?(listener)
  end

  def test_what_is_wrong_with_the_query_is_told_without_it
    error = assert_raises(Fairlead::BindError) { Fairlead::Binding.parse("ssl://h:1?cert=a") }

    assert_equal "cannot listen on ssl://h:1: each cert needs its key (cert: 1, key: 0)", error.message
    assert_match(%r{use ssl://HOST:PORT}, assert_raises(Fairlead::BindError) { Fairlead::Binding.parse("ssl://h") }.message)
  end
end
