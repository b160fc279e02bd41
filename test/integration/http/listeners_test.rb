# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Kinds of listeners, and the env values about the client.
class ListenersTest < Minitest::Test
  include Fairlead::Test::HttpServing

  TELL = "[200, { 'content-type' => 'text/plain' }, [env.values_at(*%w[REMOTE_ADDR SERVER_NAME SERVER_PORT]).join(' ')]]"
  WITHOUT_HOST = "GET / HTTP/1.0\r\n\r\n"

  def test_ipv4
    server = serve(linted(TELL))

    assert_equal "127.0.0.1 127.0.0.1 #{server.port}", connect(server).write(WITHOUT_HOST).answer.body
  end

  def test_ipv6
    skip "this machine has no IPv6" unless ipv6?
    server = serve(linted(TELL), bind: "tcp://[::1]:0")

    assert_equal "::1 [::1] #{server.port}", adopt(TCPSocket.new("::1", server.port)).write(WITHOUT_HOST).answer.body
  end

  def test_an_ipv4_client_of_a_listener_for_both_is_told_as_such
    skip "this machine has no IPv6" unless ipv6?
    server = serve(linted(TELL), bind: "tcp://[::]:0")

    assert_equal "127.0.0.1", connect(server).get.body.split.first
    assert_equal "::1", adopt(TCPSocket.new("::1", server.port)).get.body.split.first
  end

  def test_a_unix_socket
    server = serve(linted(TELL), bind: "unix://app.sock")
    client = adopt(UNIXSocket.new(server.path("app.sock")))

    assert_equal "127.0.0.1 localhost 80", client.get.body
    assert_equal "127.0.0.1 localhost 80", client.write(WITHOUT_HOST).answer.body
  end

  def test_an_abstract_socket
    linux_only("abstract sockets")
    name = "fairlead-test-#{Process.pid}"
    serve(linted(TELL), bind: "unix://@#{name}")

    assert_equal "127.0.0.1 localhost 80", adopt(UNIXSocket.new("\0#{name}")).get.body
  end

  def test_several_listeners_at_once
    server = serve(linted(TELL), "-b", "tcp://127.0.0.1:0", "-b", "unix://app.sock", bind: "tcp://127.0.0.1:0")

    assert_equal 2, server.ports.uniq.size
    server.ports.each { |port| assert_equal 200, adopt(TCPSocket.new("127.0.0.1", port)).get.status }
    assert_equal 200, adopt(UNIXSocket.new(server.path("app.sock"))).get.status
  end

  private

  def ipv6?
    TCPServer.new("::1", 0).close
    true
  rescue SystemCallError
    false
  end
end
