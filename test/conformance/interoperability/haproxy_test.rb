# frozen_string_literal: true

require "test_helper"
require "json"
require "openssl"
require "support/certificates"
require "support/http_client"
require_relative "proxies"

# HAProxy's information about its clients: in both versions of the PROXY protocol, including their TLS, and in fields.
class HaproxyTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.slice("REMOTE_ADDR", "rack.url_scheme", *env.keys.grep(/\\A(SSL_|HTTPS)/)))]] }
  RUBY

  # Each frontend has an open socket: connections from before HAProxy is ready wait in it.
  CONF = <<~CONF
    defaults
      mode tcp
      timeout connect 5s
      timeout client 30s
      timeout server 30s
    listen v1
      bind fd@%<v1>d
      server app 127.0.0.1:%<any>d send-proxy
    listen v2
      bind fd@%<v2>d
      server app 127.0.0.1:%<any>d send-proxy-v2 proxy-v2-options crc32c,unique-id,authority
    listen tls
      bind fd@%<tls>d ssl crt pair.pem ca-file ca.pem verify optional
      server app 127.0.0.1:%<any>d send-proxy-v2 proxy-v2-options ssl,cert-cn,crc32c,authority
    listen fields
      bind fd@%<fields>d ssl crt pair.pem
      mode http
      option forwardfor
      http-request set-header X-Forwarded-Proto %%[ssl_fc,iif(https,http)]
      server app 127.0.0.1:%<plain>d
    listen checks
      bind fd@%<checks>d
      option httpchk GET /
      server app 127.0.0.1:%<any>d send-proxy-v2 check inter 100 rise 1
  CONF

  # Address of the clients, which is not a proxy's.
  CLIENT = "127.0.0.2"

  def test_clients_are_told_in_both_versions
    start

    %i[v1 v2 checks].each do |frontend|
      client = adopt(TCPSocket.new("127.0.0.1", port(frontend), CLIENT))
      2.times { assert_equal({ "REMOTE_ADDR" => CLIENT, "rack.url_scheme" => "http" }, JSON.parse(client.get.body), frontend) }
    end
    refute_match(/refused/, @server.stderr)
  end

  def test_the_tls_of_clients_is_told
    start
    seen = ask(:tls, Fairlead::Test::Authority.usual.client)

    assert_equal [CLIENT, "https", "on", "TLSv1.3", "SUCCESS", "client"],
                 seen.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTPS", "SSL_PROTOCOL", "SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN_CN")
    assert_equal ["NONE", nil, "localhost"], ask(:tls).values_at("SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN_CN", "SSL_TLS_SNI")
  end

  def test_fields_tell_the_client_and_those_that_it_has_sent_do_not
    start
    forged = "x-forwarded-for: 6.6.6.6\r\nx-forwarded-proto: ftp\r\n"

    assert_equal [CLIENT, "https"], ask(:fields, fields: forged).values_at("REMOTE_ADDR", "rack.url_scheme")
  end

  def teardown
    Process.kill(:KILL, @haproxy) && Process.wait(@haproxy) if @haproxy
    $stderr.puts(File.read(@server.path("haproxy.log"))) unless passed? || skipped?
    @sockets&.each_value(&:close)
    super
  end

  private

  def start
    program = Proxy.program("haproxy") || skip("haproxy is not installed")
    pair = Fairlead::Test::Authority.usual.server("localhost")
    @server = serve(APP, "--trusted-proxies", "127.0.0.1", "-b", "tcp://127.0.0.1:0?proxy_protocol=any", "-b", "tcp://127.0.0.1:0",
                    bind: nil, files: { "pair.pem" => pair.pem + pair.key_pem, "ca.pem" => Fairlead::Test::Authority.usual.pem })
    @sockets = %i[v1 v2 tls fields checks].to_h { |name| [name, TCPServer.new("127.0.0.1", 0)] }
    conf = format(CONF, **@sockets.transform_values(&:fileno), any: @server.ports[0], plain: @server.ports[1])
    @server.write("conf", conf)
    inherited = @sockets.values.to_h { |socket| [socket, socket] }
    @haproxy = Process.spawn(program, "-db", "-f", "conf", chdir: @server.directory, in: File::NULL, %i[out err] => @server.path("haproxy.log"),
                             **inherited)
  end

  def port(frontend) = @sockets.fetch(frontend).local_address.ip_port

  # Returns the application's view of a client with TLS.
  def ask(frontend, pair = nil, fields: "")
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(pair.certificate, pair.key) if pair
    socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", port(frontend), CLIENT), context)
    socket.sync_close = true
    socket.hostname = "localhost"
    socket.connect
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n#{fields}\r\n")
    JSON.parse(socket.read[/\{.*\}/])
  ensure
    socket&.close
  end
end
