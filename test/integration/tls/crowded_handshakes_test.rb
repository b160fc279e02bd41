# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/delayed_relay"
require "support/made_certificates"

# Attackers that begin endless handshakes, or make them expensive: honest clients are still served.
class CrowdedHandshakesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  APP = "run ->(_env) { [200, {}, ['hello']] }"

  def test_connections_with_one_byte_displace_no_client_from_afar
    server = serve_tls(APP, "--max-handshakes", 10)
    relay = Fairlead::Test::DelayedRelay.new(server.port, 0.3)
    begun = 0
    attack = Thread.new { loop { begin_handshake(server.port, begun += 1) } }
    wait_until("dropped handshakes") { server.stderr.include?("there are too many at a time") }
    before = begun

    3.times { assert_equal "hello", tls_get(relay.port) }
    assert_operator begun - before, :>, 100, "too few attackers to fill the limit"
  ensure
    attack&.kill&.join
    relay&.close
    @sockets&.each(&:close)
  end

  # As many certificates of one name as fit into the message: each could be the issuer of each.
  def test_many_certificates_cost_others_nothing
    server = serve_tls(APP, query: { verify_mode: "peer", ca: "ca.pem" })
    calm = handshakes(server)
    attack = Array.new(6) { Thread.new { loop { send_certificates(server.port) } } }
    wait_until("the attackers' first handshakes") { server.stderr.include?("no TLS handshake with") }

    assert_operator handshakes(server), :>, calm / 20
    assert_logged(/no TLS handshake with \S+ \(it has sent 160 certificates; at most 8 are checked/, server)
  ensure
    attack&.each { |thread| thread.kill.join }
  end

  private

  # From another address than the honest clients.
  def begin_handshake(port, number)
    socket = Socket.new(:INET, :STREAM)
    socket.bind(Addrinfo.tcp("127.0.0.2", 0))
    socket.connect(Addrinfo.tcp("127.0.0.1", port))
    socket.write("\x16")
    @sockets ||= []
    @sockets[number % 100]&.close
    @sockets[number % 100] = socket
  rescue SystemCallError
    socket.close
  end

  # Number of handshakes in two seconds.
  def handshakes(server)
    ends = now + 2
    count = 0
    while now < ends
      tls_socket(server.port).close
      count += 1
    end
    count
  end

  def send_certificates(port)
    own, *rest = chain
    context = OpenSSL::SSL::SSLContext.new
    context.verify_mode = OpenSSL::SSL::VERIFY_NONE
    context.add_certificate(own.certificate, own.key, rest.map(&:certificate))
    socket = connect_tls(context, port, "localhost", nil)
    socket.read(1)
  rescue OpenSSL::SSL::SSLError, SystemCallError
    nil
  ensure
    socket&.close
  end

  # The first certificate is a client's.
  def chain
    bare = { "keyUsage" => nil, "extendedKeyUsage" => nil, "subjectKeyIdentifier" => nil }
    @chain ||= Array.new(160) do |number|
      change = { **bare, "basicConstraints" => "CA:#{number.zero? ? "FALSE" : "TRUE"}" }
      Fairlead::Test::MadeCertificates.client(by: nil, name: "a", change: change)
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
