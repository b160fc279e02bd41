# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "support/certificates"
require "support/http_client"

# Addresses with TLS: the env of applications, the selection of certificates, and error messages.
class TlsListeningTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::HttpClients

  Authority = Fairlead::Test::Authority

  APP = <<~RUBY
    require "json"
    use Rack::Lint
    run lambda { |env|
      body = JSON.generate(env.select { |name, value| value.is_a?(String) && name != "rack.input" })
      [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
    }
  RUBY

  def test_requests_are_seen_as_what_they_are
    server = serve_tls(APP)
    env = JSON.parse(tls_get(server.port, fields: { "host" => "localhost:#{server.port}" }))

    assert_equal "https://127.0.0.1:#{server.port}", server.addresses.first
    assert_equal ["https", "on", server.port.to_s], env.values_at("rack.url_scheme", "HTTPS", "SERVER_PORT")
    assert_equal %w[TLSv1.3 localhost NONE], env.values_at("SSL_PROTOCOL", "SSL_TLS_SNI", "SSL_CLIENT_VERIFY")
    assert_equal "", env["SSL_CLIENT_CERT"]
    refute_includes env, "SSL_CLIENT_S_DN"
  end

  def test_what_a_client_says_of_itself_is_not_what_tls_says
    forged = { "https" => "off", "ssl-client-cert" => "forged", "ssl-client-verify" => "SUCCESS", "ssl-client-s-dn" => "CN=root" }
    server = serve_tls(APP, "-b", "tcp://127.0.0.1:0")
    plain = JSON.parse(answer_of(server.ports.last, forged))
    secure = JSON.parse(tls_get(server.ports.first, fields: forged))

    assert_equal %w[forged off], secure.values_at("HTTP_SSL_CLIENT_CERT", "HTTP_HTTPS")
    assert_equal ["on", "NONE", ""], secure.values_at("HTTPS", "SSL_CLIENT_VERIFY", "SSL_CLIENT_CERT")
    assert_equal "forged", plain["HTTP_SSL_CLIENT_CERT"]
    assert_empty plain.keys.grep(/\A(?:SSL_|HTTPS\z)/)
    assert_equal "http", plain["rack.url_scheme"]
  end

  def test_requests_with_and_without_tls_on_the_same_thread_keep_to_themselves
    client = Authority.usual.client
    server = serve_tls(APP, "-t", 1, "-b", "tcp://127.0.0.1:0", query: { verify_mode: "peer", ca: "ca.pem" })
    seen = Array.new(4) do # repeatedly, so that envs come from shapes
      [tls_get(server.ports.first, pair: client), tls_get(server.ports.first), answer_of(server.ports.last, "connection" => "close")]
        .map { |body| JSON.parse(body).values_at("HTTPS", "SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN") }
    end

    assert_equal [[["on", "SUCCESS", 'CN=client,O=Works\\, Inc.'], ["on", "NONE", nil], [nil, nil, nil]]], seen.uniq
  end

  def test_a_host_gets_its_own_certificate
    files = { "first" => "localhost", "second" => "second.test", "wild" => "*.wild.test" }.flat_map { |name, host| pair_files(name, host) }
    address = "ssl://127.0.0.1:0?cert=first.pem&key=first.key&key=second.key&cert=second.pem"
    server = serve(APP, "--certificate", "wild.pem,wild.key", files: files.to_h, bind: address)

    assert_equal "/CN=second.test", certificate_for("second.test", server)
    assert_equal "/CN=*.wild.test", certificate_for("a.wild.test", server)
    assert_equal "/CN=localhost", certificate_for("unknown.test", server)
    assert_equal "/CN=localhost", certificate_for(nil, server)
  end

  # The file of 10,000 certificates has more than a MiB.
  def test_a_configuration_may_name_very_many_certificates
    hosts = Array.new(60) { |index| "h#{index}.test" }
    files = hosts.flat_map { |host| pair_files(host, host) }.to_h
    lines = hosts.map { |host| "certificate '#{host}.pem', '#{host}.key' # #{"x" * 20_000}\n" }
    server = serve_tls(APP, "-C", "certificates.rb", files: { "certificates.rb" => lines.join, **files })

    assert_equal %w[/CN=h0.test /CN=h59.test], %w[h0.test h59.test].map { |host| certificate_for(host, server) }
  end

  def test_versions
    old = serve_tls(APP)
    new = serve_tls(APP, query: { min_version: "1.3" })

    assert_equal "TLSv1.2", JSON.parse(tls_get(old.port, version: "1.2"))["SSL_PROTOCOL"]
    assert_equal "TLSv1.3", JSON.parse(tls_get(new.port, version: "1.3"))["SSL_PROTOCOL"]
    assert_raises(OpenSSL::SSL::SSLError) { tls_get(new.port, version: "1.2") }
    assert_logged(/no TLS handshake with 127\.0\.0\.1:\d+ \(/, new)
  end

  def test_puma_names_it_so_too
    pair = Authority.usual.server("localhost")
    config = <<~RUBY
      ssl_bind "127.0.0.1", "0", { cert: "cert.pem", key_pem: File.read("key.pem"), verify_mode: "peer", ca: "ca.pem", no_tlsv1: true }
      puma_env
    RUBY
    app = 'run ->(env) { [200, {}, [env["puma.peercert"].inspect[/CN=\w+/].to_s, env["HTTPS"]]] }'
    files = certificate_files(pair, "config/puma.rb": config, "ca.pem": Authority.usual.pem)
    server = serve(app, files: files, bind: nil)

    assert_equal "CN=clienton", tls_get(server.port, pair: Authority.usual.client)
    assert_equal "on", tls_get(server.port)
    refute_includes File.read("/proc/#{server.pid}/cmdline"), "PRIVATE"
  end

  def test_an_ocsp_response_is_stapled
    response = OpenSSL::OCSP::Response.create(OpenSSL::OCSP::RESPONSE_STATUS_SUCCESSFUL, basic_response).to_der
    server = serve_tls(APP, files: { "a.der" => response }, query: { ocsp: "a.der" })

    assert_includes status(server), "OCSP Response Status: successful"
  end

  def test_an_ocsp_response_that_is_out_of_date_or_of_another_certificate_is_not_stapled
    { "is out of date" => basic_response(ends: -30), "is about another certificate" => basic_response(Authority.usual.server("other")) }
      .each do |problem, basic|
      response = OpenSSL::OCSP::Response.create(OpenSSL::OCSP::RESPONSE_STATUS_SUCCESSFUL, basic).to_der
      server = serve_tls(APP, files: { "a.der" => response }, query: { ocsp: "a.der" })

      assert_includes status(server), "OCSP response: no response sent"
      assert_logged(/a\.der: the OCSP response #{problem}; clients do not get it until it is replaced/, server)
    end
  end

  def test_a_key_may_be_encrypted
    pair = Authority.usual.server("localhost")
    encrypted = pair.key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "secret")
    server = serve_tls(APP, files: { "key.pem" => encrypted }, query: { key_password_command: "echo secret" })

    assert_includes tls_get(server.port), "TLSv1.3"
    assert_refused(/key\.pem: the private key cannot be decrypted/, files: { "key.pem" => encrypted }, query: { key_password_command: "echo wrong" })
    assert_refused(/key\.pem: the private key is encrypted; give key_password_command/, files: { "key.pem" => encrypted })
  end

  def test_what_is_wrong_is_said_in_one_line_at_the_start
    other = Authority.usual.server("localhost", number: 1)
    assert_refused(/the key \S+key\.pem does not belong to the certificate \S+cert\.pem/, files: { "key.pem" => other.key_pem })
    assert_refused(/cert\.pem: it contains no certificate in PEM/, files: { "cert.pem" => "nothing" })
    assert_refused(/nowhere\.pem: cannot be read \(ENOENT\)/, query: { verify_mode: "peer", ca: "nowhere.pem" })
    assert_refused(/verify_mode=peer needs ca/, query: { verify_mode: "peer" })
    assert_refused(/ssl_cipher_filter: the cipher suites are not chosen/, query: { ssl_cipher_filter: "HIGH" })
  end

  def test_what_should_be_known_is_a_warning
    server = serve_tls(APP, pair: Authority.usual.server("localhost", ends: -0.5))
    assert_logged(/warning: \S+cert\.pem: the certificate has expired/, server)
    File.chmod(0o644, server.path("key.pem"))

    assert_equal 0, server.stop.exitstatus
    again = own(server.again).start
    assert_logged(/warning: everybody on this machine may read the key \S+key\.pem/, again)
  end

  private

  # [path, text] of a certificate for a host, and of its key.
  def pair_files(name, host)
    pair = Authority.usual.server(host)
    [["#{name}.pem", pair.pem], ["#{name}.key", pair.key_pem]]
  end

  def assert_refused(expected, **options)
    server = launch_tls(APP, **options)

    assert_equal 1, server.wait_exit.exitstatus
    assert_equal 1, server.stderr.lines.size, server.stderr
    assert_match(expected, server.stderr)
  end

  def certificate_for(host, server)
    context = OpenSSL::SSL::SSLContext.new
    tcp = TCPSocket.new("127.0.0.1", server.port)
    socket = OpenSSL::SSL::SSLSocket.new(tcp, context)
    socket.hostname = host if host
    socket.connect.peer_cert.subject.to_s
  ensure
    tcp&.close
  end

  def answer_of(port, fields)
    Net::HTTP.start("127.0.0.1", port) { |http| http.get("/", fields).body }
  end

  # OCSP status in the handshake.
  def status(server) = `openssl s_client -connect 127.0.0.1:#{server.port} -status -servername localhost </dev/null 2>&1`

  def basic_response(pair = Authority.usual.server("localhost"), ends: 3600)
    basic = OpenSSL::OCSP::BasicResponse.new
    id = OpenSSL::OCSP::CertificateId.new(pair.certificate, Authority.usual.certificate)
    basic.add_status(id, OpenSSL::OCSP::V_CERTSTATUS_GOOD, 0, nil, -60, ends, [])
    basic.sign(pair.certificate, pair.key)
  end
end
