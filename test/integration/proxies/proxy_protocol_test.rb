# frozen_string_literal: true

require "test_helper"
require "ipaddr"
require "json"
require "openssl"
require "support/certificates"
require "support/http_client"
require "support/proxy_protocol"

# The PROXY protocol: the client in the PROXY header, and connections without a header.
class ProxyProtocolTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::HttpClients
  include Fairlead::Test::ProxyProtocol

  APP = <<~RUBY
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.slice("REMOTE_ADDR", "rack.url_scheme", "HTTPS", "fairlead.proxy_tls", *env.keys.grep(/\\ASSL_/)))]] }
  RUBY

  VERSIONS = %w[v1 v2 any].freeze
  LISTENERS = VERSIONS.flat_map { |version| ["-b", "tcp://127.0.0.1:0?proxy_protocol=#{version}"] }.freeze
  REQUEST = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

  ALL = Fairlead::Test::ProxyProtocol
  # First bytes of a connection => its client, by version; nil if it is refused.
  BEGINNINGS = {
    ALL.line => ["192.0.2.1", nil, "192.0.2.1"],
    ALL.line("2001:db8::1") => ["2001:db8::1", nil, "2001:db8::1"],
    ALL::UNKNOWN => ["127.0.0.1", nil, "127.0.0.1"],
    ALL.block => [nil, "192.0.2.1", "192.0.2.1"],
    ALL.block(client: "2001:db8::1") => [nil, "2001:db8::1", "2001:db8::1"],
    ALL::LOCAL => [nil, "127.0.0.1", "127.0.0.1"],
    ALL.with_checksum(ALL.block(ALL.vector(0x05, "id"), ALL.vector(0xe0, "x" * 4000))) => [nil, "192.0.2.1", "192.0.2.1"],
    ALL.block(ALL.vector(0xe0, "x" * 16_400)) => [nil, nil, nil],
    ALL.with_checksum(ALL.block).sub("\xC0\x00\x02\x01".b, "\xC0\x00\x02\x07".b) => [nil, nil, nil],
    ALL.block("\x04\x00".b) => [nil, nil, nil],
    ALL.block.sub("\x21\x11".b, "\x22\x11".b) => [nil, nil, nil],
    "PROXY TCP4 192.0.2.1 192.0.2.2 40000\r\n" => [nil, nil, nil],
    "PROXY UNKNOWN#{" " * 100}\r\n" => [nil, nil, nil],
    "proxy unknown\r\n" => [nil, nil, nil],
    "\r\n" => [nil, nil, nil],
    "" => [nil, nil, nil]
  }.freeze

  def test_each_listener_takes_what_its_address_says_and_refuses_the_rest
    server = serve(APP, *LISTENERS, bind: nil)
    BEGINNINGS.each do |beginning, clients|
      clients.zip(server.ports) do |client, port|
        connection = adopt(TCPSocket.new("127.0.0.1", port)).write(beginning + REQUEST)
        if client
          assert_equal [client] * 2, [connection.answer, connection.get].map { |answer| env(answer)["REMOTE_ADDR"] }, beginning.inspect
        else
          assert_equal 400, connection.answer.status, beginning.inspect
          assert_predicate connection, :closed?
        end
      end
    end

    assert_logged(/refused 400 \(invalid PROXY line\) from 127\.0\.0\.1:\d+$/, server)
    assert_logged(/refused 400 \(wrong checksum of the PROXY header\) from 127\.0\.0\.1:\d+$/, server)
    refused = BEGINNINGS.values.flatten.count(nil)
    wait_until("a line for each refusal") { server.stderr.scan("refused 400").size >= refused }
    assert_equal refused, server.stderr.lines.size
  end

  def test_what_comes_too_late_or_in_pieces
    server = serve(APP, *LISTENERS, "--head-timeout", 0.4, bind: nil)
    [line[0, 20], block[0, 20]].zip(server.ports) do |part, port|
      assert_equal 408, adopt(TCPSocket.new("127.0.0.1", port)).write(part).answer.status
    end
    [block, ""].each { |silent| assert_predicate adopt(TCPSocket.new("127.0.0.1", server.ports[1])).write(silent), :closed? }
    connection = adopt(TCPSocket.new("127.0.0.1", server.ports[2]))
    block(tls).each_char { |byte| connection.write(byte) }

    assert_equal %w[192.0.2.1 https], env(connection.get).values_at("REMOTE_ADDR", "rack.url_scheme")
  end

  # HAProxy's information with the keyword send-proxy-v2-ssl-cn, and its information about the certificate.
  def test_the_application_sees_the_tls_of_the_client
    pair = Fairlead::Test::Authority.usual.client
    server = serve(APP, *LISTENERS, bind: nil)
    { [] => { "HTTPS" => nil, "rack.url_scheme" => "http" },
      [tls, vector(0x02, "shop.example")] => { "HTTPS" => "on", "rack.url_scheme" => "https", "SSL_PROTOCOL" => "TLSv1.3",
                                               "SSL_CIPHER" => "AES", "SSL_TLS_SNI" => "shop.example", "SSL_CLIENT_VERIFY" => "NONE" },
      [tls(name: "ann")] => { "SSL_CLIENT_VERIFY" => "SUCCESS", "SSL_CLIENT_S_DN_CN" => "ann", "SSL_CLIENT_CERT" => "" },
      [tls(certificate: pair.certificate.to_der)] => { "SSL_CLIENT_VERIFY" => "SUCCESS", "SSL_CLIENT_S_DN_CN" => nil,
                                                       "SSL_CLIENT_S_DN" => 'CN=client,O=Works\\, Inc.' },
      [tls(certificate: pair.certificate.to_der, verification: 10)] => { "SSL_CLIENT_VERIFY" => "FAILED:the certificate is not valid" },
      [tls(certificate: "no DER")] => { "HTTPS" => "on" } }.each do |vectors, expected|
      connection = adopt(TCPSocket.new("127.0.0.1", server.ports[1])).write(block(*vectors))
      3.times { assert_equal expected.values, env(connection.get).values_at(*expected.keys), expected.keys.inspect }
    end
  end

  def test_the_header_comes_before_tls
    server = serve_tls(APP, query: { proxy_protocol: "any" })
    [line, block, with_checksum(block(tls(version: "TLSv1.2")))].each do |header|
      assert_equal ["192.0.2.1", "on", "TLSv1.3"], ask_behind(header, server.port).values_at("REMOTE_ADDR", "HTTPS", "SSL_PROTOCOL")
    end

    assert_predicate adopt(TCPSocket.new("127.0.0.1", server.port)).write("\x16\x03\x01\x00\x01"), :closed?
    assert_logged(/refused 400 \(invalid PROXY header\) from 127\.0\.0\.1/, server)
  end

  # Any peer may send the header, so it never replaces an identity that a handshake has proved.
  def test_a_header_does_not_replace_the_identity_that_our_own_handshake_has_verified
    admin = Fairlead::Test::Authority.usual.client("/CN=admin")
    ann = Fairlead::Test::Authority.usual.client("/CN=ann")
    header = block(tls(version: "TLSv1.2", certificate: admin.certificate.to_der))
    query = { proxy_protocol: "v2", verify_mode: "peer", ca: "ca.pem" }
    { [] => nil, ["--trusted-proxies", "192.0.2.0/24"] => nil,
      ["--trusted-proxies", "127.0.0.1"] => %w[TLSv1.2 SUCCESS CN=admin] }.each do |arguments, claim|
      server = serve_tls(APP, *arguments, query: query)
      { nil => ["NONE", nil], ann => ["SUCCESS", "CN=ann"] }.each do |pair, expected|
        seen = ask_behind(header, server.port, pair)

        assert_equal ["TLSv1.3", *expected], seen.values_at("SSL_PROTOCOL", "SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN")
        assert_nil seen["SSL_CLIENT_S_DN_CN"]
        assert_equal [claim], [seen["fairlead.proxy_tls"]&.values_at("SSL_PROTOCOL", "SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN")]
      end
    end
  end

  def test_one_option_is_for_all_listeners_and_an_address_has_the_last_word
    server = serve(APP, "--remote-address", "proxy_protocol:v2", "-b", "tcp://127.0.0.1:0", "-b", "tcp://127.0.0.1:0?proxy_protocol=none",
                   "-b", "tcp://127.0.0.1:0?proxy_protocol=v1", "-b", "unix://app.sock", bind: nil)
    beginnings = [block, "", line]

    server.ports.zip(beginnings, %w[192.0.2.1 127.0.0.1 192.0.2.1]) do |port, beginning, expected|
      assert_equal expected, env(adopt(TCPSocket.new("127.0.0.1", port)).write(beginning).get)["REMOTE_ADDR"]
    end
    assert_equal "192.0.2.1", env(adopt(UNIXSocket.new(server.path("app.sock"))).write(block).get)["REMOTE_ADDR"]
    assert_equal "127.0.0.1", env(adopt(UNIXSocket.new(server.path("app.sock"))).write(LOCAL).get)["REMOTE_ADDR"]
  end

  # The listeners stay open, and new processes must know their options.
  def test_a_listener_stays_what_it_is_when_workers_and_the_server_are_replaced
    server = serve(APP, "-w", 1, bind: "tcp://127.0.0.1:0?proxy_protocol=v2")
    ask = -> { env(connect(server).write(block).get)["REMOTE_ADDR"] }
    %i[USR1 USR2].each do |signal|
      before = server.worker_pids
      server.signal(signal)
      wait_until("another worker") { (server.worker_pids - before).any? && (server.worker_pids & before).empty? }

      assert_equal "192.0.2.1", ask.call
      assert_equal 400, connect(server).write(REQUEST).answer.status
    end
  end

  private

  # Env of a request over TLS, twice on one connection. +pair+: the client's certificate.
  def ask_behind(header, port, pair = nil)
    tcp = TCPSocket.new("127.0.0.1", port)
    tcp.write(header)
    context = OpenSSL::SSL::SSLContext.new.tap { |one| one.verify_mode = OpenSSL::SSL::VERIFY_NONE }
    context.add_certificate(pair.certificate, pair.key) if pair
    socket = OpenSSL::SSL::SSLSocket.new(tcp, context)
    socket.sync_close = true
    socket.connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    first, second = socket.read.scan(/\{.*\}/).map { |body| JSON.parse(body) }
    assert_equal first, second
    first
  ensure
    socket&.close
  end

  def env(answer)
    assert_equal 200, answer.status
    JSON.parse(answer.body)
  end
end
