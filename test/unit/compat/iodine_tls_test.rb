# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/apart"

# Iodine::TLS, and Iodine.listen with it: the resulting `ssl://` address.
class IodineTlsTest < Minitest::Test
  include Fairlead::Test::Apart

  APP = ->(_) { [200, {}, ["app"]] }
  AT = { address: "127.0.0.1", port: 3456 }.freeze

  def setup
    ENV.delete_if { |name, _| Fairlead::Test::ServerProcess::CLEARED.include?(name) }
    require "fairlead/compat/iodine"
  end

  def test_certificates_and_keys_are_files
    assert_equal "ssl://127.0.0.1:3456?cert=a.pem&key=a.key", bind(tls: Iodine::TLS.new("shop.test", "a.pem", "a.key"))
    assert_equal "ssl://127.0.0.1:3456?cert=a.pem&key=a.key", bind(tls: Iodine::TLS.new(certificate: "a.pem", private_key: "a.key"))
    assert_equal "ssl://127.0.0.1:3456?cert=a.pem&key=a.key", bind(tls: Iodine::TLS.new({ certificate: "a.pem", private_key: "a.key" }))
  end

  def test_there_may_be_several_certificates
    tls = Iodine::TLS.new("shop.test", "a.pem", "a.key")

    assert_same tls, tls.use_certificate("blog.test", "b.pem", "b.key")
    assert_equal [%w[a.pem a.key], %w[b.pem b.key]], parameters(tls).certificates.map { |one| [one.cert, one.key] }
  end

  def test_a_name_alone_and_a_service_alone_have_the_certificate_for_development
    [{ tls: Iodine::TLS.new }, { tls: Iodine::TLS.new("localhost") }, { service: :https }, { service: "wss" }].each do |settings|
      assert_equal "ssl://127.0.0.1:3456", bind(**settings), settings
    end
    assert_equal "ssl://localhost:1", Iodine::ListenOptions.new({ url: "wss://localhost:1" }, APP).bind
  end

  def test_whom_it_trusts_may_come_and_nobody_else
    tls = Iodine::TLS.new("shop.test", "a.pem", "a.key").trust("ca.pem").trust("ca.pem")

    assert_equal ["ca.pem", "force_peer"], [parameters(tls).ca, parameters(tls).verify_mode]
    assert_equal "none", parameters(Iodine::TLS.new).verify_mode
    assert_match(/one file/, assert_raises(NotImplementedError) { tls.trust("other.pem") }.message)
  end

  def test_the_password_of_a_key_is_in_no_address
    tls = Iodine::TLS.new(nil, "a.pem", "a.key", "secret & more").use_certificate("b", "b.pem", "b.key", "secret & more")

    refute_includes bind(tls: tls), "secret"
    assert_equal "secret & more", Fairlead::Tls::Store[parameters(tls).key_password_command]
    assert_match(/same one/, assert_raises(NotImplementedError) { tls.use_certificate("c", "c.pem", "c.key", "another") }.message)
  end

  def test_http_is_the_protocol_and_others_say_what_to_use
    tls = Iodine::TLS.new

    assert_same tls, tls.on_protocol("http/1.1") { nil }
    assert_match(/SSLServer/, assert_raises(NotImplementedError) { tls.on_protocol("h2") { nil } }.message)
    assert_raises(ArgumentError) { tls.on_protocol("http/1.1") }
  end

  def test_the_defaults_may_have_it
    Iodine::DEFAULT_SETTINGS[:tls] = Iodine::TLS.new(nil, "a.pem", "a.key")
    given = nil
    Fairlead::Launcher.stub(:new, ->(configuration, **) { (given = configuration) && Struct.new(:run).new(0) }) do
      Iodine::Rack.run(APP, { Port: 3456, Host: "127.0.0.1" })
    end

    assert_equal ["ssl://127.0.0.1:3456?cert=a.pem&key=a.key"], given.bind
    assert_equal "ssl://127.0.0.1:3456?cert=a.pem&key=a.key", bind
  end

  def test_what_it_cannot_do_is_one_error
    [{ address: "/tmp/a.sock" }, { url: "unix:///tmp/a.sock" }].each do |place|
      error = assert_raises(NotImplementedError) { Iodine::ListenOptions.new({ **place, tls: Iodine::TLS.new }, APP).bind }
      assert_match(/listen on a port/, error.message)
    end
    beside = Iodine::TLS.new("shop.test", "a.pem", "a.key").use_certificate("localhost")
    assert_match(/localhost.* its key/, assert_raises(NotImplementedError) { bind(tls: beside) }.message)
  end

  def test_mistakes_are_told
    assert_match(/private key of a\.pem is missing/, assert_raises(ArgumentError) { Iodine::TLS.new("x", "a.pem") }.message)
    assert_match(/certificate of a\.key is missing/, assert_raises(ArgumentError) { Iodine::TLS.new("x", nil, "a.key") }.message)
    assert_raises(ArgumentError) { Iodine::TLS.new("x", "a.pem", "a.key", "p", "q") }
    assert_raises(ArgumentError) { Iodine::TLS.new(cert: "a.pem") }
    assert_raises(TypeError) { Iodine::TLS.new(:x) }
    assert_raises(TypeError) { Iodine::TLS.new.trust(nil) }
    assert_raises(TypeError) { Iodine.listen(handler: APP, tls: "a.pem") }
  end

  private

  def bind(**settings) = Iodine::ListenOptions.new({ **AT, **settings }, APP).bind

  # Parameters of the address.
  def parameters(tls) = Fairlead::Binding.parse(tls.address_for("127.0.0.1", 1)).tls
end
