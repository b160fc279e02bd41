# frozen_string_literal: true

require "test_helper"
require "support/acme_servers"

# Certificates from ACME as clients see them: from before the first one to a renewal.
class AcmeTlsTest < Minitest::Test
  include Fairlead::Test::AcmeServers

  HOSTS = %w[one.example two.example].freeze

  # There is no plain listener, so the authority uses TLS-ALPN challenges.
  def test_each_host_gets_its_certificate_as_soon_as_there_is_one_and_none_before
    server = with_acme(*HOSTS, bind: "ssl://127.0.0.1:0", arguments: ["-w", "2"], found: false)
    HOSTS.each do |host|
      server.wait_for_output(/there is no new certificate for #{host}: #{host}: /)
      assert_raises(OpenSSL::SSL::SSLError) { request(server, host) }
    end
    lead_to(server)
    HOSTS.each do |host|
      File.delete(failure_file(server, host))
      server.wait_for_output(/ordering a certificate for #{host} from \S+ \(tls-alpn-01\)/)
      wait_until("the certificate for #{host}") { served?(server, host) }
    end

    assert_equal(HOSTS.map { |host| certificate(server, host).serial }, HOSTS.map { |host| request(server, host).serial })
    assert_empty Dir.glob(server.path("state/challenges/*/*"))
  end

  # The authority need not follow the redirect of all other requests to a host without a certificate.
  def test_a_renewal_fails_no_request_and_closes_no_connection
    server = with_acme("short.example", arguments: ["-b", "ssl://127.0.0.1:0", "-w", "2", "--redirect-to-https"], authority: strict, **EXTERNAL)
    wait_until("the first certificate") { served?(server, "short.example", strict) }
    kept = connect(server, "short.example", strict)
    first = kept.peer_cert
    wait_until("a renewal", seconds: 30) { request(server, "short.example", strict).serial != first.serial }
    renewed = certificate(server, "short.example")

    assert_equal "the application", answer(kept)
    assert_operator renewed.not_before, :>=, first.not_before + (VALIDITY / 2)
    assert_operator renewed.not_before, :<, first.not_after
    assert_empty server.stderr.lines.grep_v(/no TLS handshake with 127.0.0.1:\d+ \(there is no certificate yet\)/)
  ensure
    kept&.close
  end

  private

  def served?(server, host, authority = pebble)
    request(server, host, authority)
  rescue OpenSSL::SSL::SSLError
    false
  end

  # Makes a request, and returns the server's certificate.
  def request(server, host, authority = pebble)
    client = connect(server, host, authority)

    assert_equal "the application", answer(client)
    client.peer_cert
  ensure
    client&.close
  end

  # Connects as a client that trusts only the authority.
  def connect(server, host, authority)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(cert_store: OpenSSL::X509::Store.new.add_cert(authority.root))
    address = server.addresses.find { |one| one.start_with?("https") }
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", Integer(address[/\d+\z/], 10)), context)
    client.sync_close = true
    client.hostname = host
    connected = client.connect
    connected.tap { client.post_connection_check(host) }
  ensure
    client&.close unless connected
  end

  def answer(client)
    client.write("GET / HTTP/1.1\r\nhost: test\r\n\r\n")
    head = client.gets("\r\n\r\n")
    client.read(Integer(head[/^content-length: (\d+)/i, 1], 10))
  end
end
