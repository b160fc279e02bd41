# frozen_string_literal: true

require "test_helper"

class BindingTest < Minitest::Test
  Binding = Fairlead::Binding
  BindError = Fairlead::BindError

  def test_the_scheme_chooses_the_class
    assert_instance_of Binding::Tcp, Binding.parse("tcp://127.0.0.1:80")
    assert_instance_of Binding::Ssl, Binding.parse("ssl://127.0.0.1:80?cert=a&key=b")
    assert_instance_of Binding::Unix, Binding.parse("unix:///tmp/x.sock")
  end

  {
    "127.0.0.1:80" => "scheme", "http://127.0.0.1" => "scheme", "ssl://a:1?certt=c" => "certt",
    "tcp://127.0.0.1" => "tcp://HOST:PORT", "tcp://:80" => "tcp://HOST:PORT",
    "tcp://::1:80" => "tcp://HOST:PORT", "tcp://a:b" => "tcp://HOST:PORT", "tcp://h:65536" => "65535", "tcp://h:1?baklog=2" => "baklog",
    "tcp://h:1?backlog=x" => "backlog", "tcp://h:1?ä=1" => "unknown parameter ä", "unix://" => "path is missing", "unix://@" => "path is missing",
    "unix:///a%00b" => "path is missing", "unix:///a?umask=9z" => "umask", "unix:///a?mode=888" => "mode"
  }.each do |uri, word|
    define_method(:"test_#{uri}_is_refused_because_of_its_#{word}") do
      error = assert_raises(BindError) { Binding.parse(uri) }

      assert_equal uri, error.address
      assert_includes error.message, uri
      assert_includes error.message, word
    end
  end

  def test_a_port_is_listened_on_by_default_on_every_interface
    assert_match(%r{\Atcp://(\[::\]|0\.0\.0\.0):9292\z}, Binding.default_address)
    assert_equal "tcp://[::1]:5", Binding.address_for_port(5, "::1")
    assert_equal "tcp://[::1]:5", Binding.address_for_port(5, "[::1]")
    assert_equal "tcp://host:5", Binding.address_for_port(5, "host")
  end

  def test_parsing_opens_nothing
    Binding.parse("unix:///nowhere/at/all.sock")
    Binding.parse("tcp://192.0.2.1:80")
  end
end
