# frozen_string_literal: true

require "test_helper"
require "json"
require "logger"
require "net/http"
require "stringio"
require "tempfile"
require "support/certificates"

# TLS in a server inside another program: certificates as text, several listeners with their own applications, and new
# certificates.
class TlsEmbeddingTest < Minitest::Test
  include Fairlead::Test::Secured
  include Fairlead::Test::Waiting

  Authority = Fairlead::Test::Authority
  APP = ->(env) { [200, {}, [JSON.generate(env.values_at("rack.url_scheme", "HTTPS", "SSL_CLIENT_VERIFY", "SSL_CLIENT_CERT"))]] }

  def setup
    @output = StringIO.new
    @pair = Authority.usual.server("localhost")
  end

  def test_http_and_https_with_different_applications_as_smart_proxy_has_them
    group = Fairlead::Group.new(log: Logger.new(@output))
    group.add(->(_env) { [200, {}, ["plain"]] }, bind: "tcp://127.0.0.1:0")
    group.add(APP, ssl_bind: ["127.0.0.1", 0, { cert_pem: @pair.certificate, key_pem: @pair.key, ca: ca_file, verify_mode: "peer" }])
    group.start

    assert_equal "plain", Net::HTTP.get(URI(group.addresses.first))
    assert_equal ["https", "on", "NONE", ""], JSON.parse(tls_get(group.ports.last))
    scheme, https, verified, pem = JSON.parse(tls_get(group.ports.last, pair: Authority.usual.client))
    assert_equal %w[https on SUCCESS], [scheme, https, verified]
    assert_equal Authority.usual.client.certificate.to_der, OpenSSL::X509::Certificate.new(pem).to_der
    assert_match(/\Ahttps:/, group.addresses.last)
    refute_includes @output.string, "PRIVATE"
  ensure
    group&.stop(1)
  end

  def test_new_certificates_are_taken_when_asked_for_and_when_files_change
    Dir.mktmpdir do |folder|
      write(folder, @pair)
      server = Fairlead::Server.new(APP, bind: "ssl://127.0.0.1:0?cert=#{folder}/cert.pem&key=#{folder}/key.pem", watch_certificates: 0.1,
                                         log: Logger.new(@output))
      server.start
      write(folder, other = Authority.usual.server("localhost", number: 1))
      wait_until("the new certificate") { serial(server) == other.certificate.serial }
      File.write("#{folder}/key.pem", "broken")

      refute server.reload_certificates
      assert_includes @output.string, "certificates not reloaded"
      write(folder, @pair)
      assert server.reload_certificates
      assert_equal @pair.certificate.serial, serial(server)
    ensure
      server&.stop(1)
    end
    assert_empty Thread.list.map(&:name).compact.grep(/certificates/)
  end

  def test_what_is_wrong_is_raised_and_nothing_is_left_open
    server = Fairlead::Server.new(APP, ssl_bind: ["127.0.0.1", 0, { cert: "/nowhere/a.pem", key: "/nowhere/a.key" }])
    error = assert_raises(Fairlead::BindError) { server.start }

    assert_equal "cannot listen on ssl://127.0.0.1:0: /nowhere/a.pem: cannot be read (ENOENT)", error.message
    refute_predicate server, :running?
    refute server.reload_certificates
  end

  def test_several_certificates_as_text
    second = Authority.usual.server("second.test")
    server = Fairlead::Server.new(APP, bind: "ssl://127.0.0.1:0", certificate: [[@pair.pem, @pair.key_pem], [second.pem, second.key_pem]])
    server.start

    assert_equal @pair.certificate.serial, serial(server)
    assert_equal second.certificate.serial, serial(server, "second.test")
  ensure
    server&.stop(1)
  end

  private

  def ca_file
    # The file is removed together with the object.
    @ca_file ||= Tempfile.new("ca").tap { |file| file.write(Authority.usual.pem) && file.flush }
    @ca_file.path
  end

  def write(folder, pair)
    File.write("#{folder}/cert.pem", pair.pem)
    File.write("#{folder}/key.pem", pair.key_pem, perm: 0o600)
  end

  def serial(server, host = "localhost")
    socket = tls_socket(server.port, host: host)
    socket.peer_cert.serial.tap { socket.close }
  end
end
