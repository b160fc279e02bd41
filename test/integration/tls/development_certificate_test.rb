# frozen_string_literal: true

require "test_helper"
require "openssl"

# An `ssl://` address without a certificate: the server makes one in development, and only there.
class DevelopmentCertificateTest < Minitest::Test
  include Fairlead::Test::Servers

  APP = "run ->(env) { [200, {}, [env['rack.url_scheme']]] }"

  def setup
    @state = Dir.mktmpdir("fairlead-test-")
    @authority = File.join(@state, "fairlead/development/authority.pem")
  end

  def teardown = FileUtils.rm_rf(@state)

  def test_a_server_on_this_machine_has_one_that_is_kept_and_can_be_trusted
    server = with_tls("-w", "2")

    assert_match(/certificate for development: .*localhost.pem \(localhost, 127.0.0.1, ::1\)/, server.stdout)
    assert_match(/sudo cp #{@authority} .* update-ca-certificates/, server.stdout)
    assert_raises(OpenSSL::SSL::SSLError) { connect(server, OpenSSL::X509::Store.new.tap(&:set_default_paths)) }

    first = connect(server, OpenSSL::X509::Store.new.add_file(@authority))
    server.stop
    again = own(server.again).start

    assert_equal first, connect(again, OpenSSL::X509::Store.new.add_file(@authority))
  end

  def test_whoever_trusts_it_is_not_told_how
    with_tls.stop
    server = with_tls(environment: { "SSL_CERT_FILE" => @authority })

    assert_match(/certificate for development/, server.stdout)
    refute_match(/to have it trusted/, server.stdout)
  end

  def test_a_check_keeps_none
    server = launch(APP, "--check", bind: "ssl://localhost:0", environment: environment)

    assert_equal 0, server.wait_exit.exitstatus, server.stderr
    assert_empty Dir.children(@state)
  end

  def test_in_production_it_is_an_error_that_says_what_to_do
    server = launch(APP, "-e", "production", bind: "ssl://localhost:0")

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/cannot listen on ssl:\S+: there is no certificate; give cert and key, .* acme/, server.stderr)
  end

  private

  def with_tls(*arguments, environment: {})
    serve(APP, *arguments, bind: "ssl://localhost:0", environment: { **self.environment, **environment })
  end

  def environment = { "XDG_STATE_HOME" => @state, "STATE_DIRECTORY" => nil }

  # Connects as a client that trusts +store+; returns the certificate's number.
  def connect(server, store)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(cert_store: store)
    socket = TCPSocket.new("127.0.0.1", server.port)
    client = OpenSSL::SSL::SSLSocket.new(socket, context)
    client.hostname = "localhost"
    client.connect.post_connection_check("localhost")
    client.write("GET / HTTP/1.0\r\n\r\n")

    assert client.read.end_with?("\r\n\r\nhttps")
    client.peer_cert.serial
  ensure
    socket&.close
  end
end
