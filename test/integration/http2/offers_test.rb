# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/http_client"
require "support/http2_commands"

# Selection of HTTP/2: by negotiation with TLS, by the preface without; never if it is switched off.
class Http2OffersTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Secured

  APP = "run ->(env) { [200, {}, [env['SERVER_PROTOCOL']]] }"
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  def test_with_tls_both_are_offered_and_the_newer_is_preferred
    server = serve_tls(APP)

    assert_equal "h2", agreed(server, %w[http/1.1 h2])
    assert_equal "http/1.1", agreed(server, %w[http/1.1])
    assert_nil agreed(server, nil)
  end

  def test_switched_off_only_the_older_is_offered
    server = serve_tls(APP, "--no-http2")

    assert_equal "http/1.1", agreed(server, %w[h2 http/1.1])
    assert_raises(OpenSSL::SSL::SSLError) { agreed(server, %w[h2]) }
  end

  def test_switched_off_the_preface_is_a_request_of_an_unknown_version
    server = serve(APP, "--no-http2")
    client = connect(server).write(PREFACE)

    assert_equal 505, client.answer.status
    assert_predicate client, :closed?
  end

  def test_without_tls_one_port_speaks_both
    server = serve(APP)

    assert_equal "HTTP/1.1", get(server).body
    assert_equal %w[HTTP/2 2], curl(server).to_a.values_at(3, 1)
  end

  # A preface may come byte by byte; a different beginning is an HTTP/1 request.
  def test_the_preface_may_come_in_pieces
    server = serve(APP)
    client = connect(server)
    PREFACE.each_char { |byte| client.write(byte) }
    client.write([0, 0, 0, 4, 0, 0, 0, 0, 0].pack("C*"))

    assert_equal 4, client.read(9).bytes[3]
    assert_equal 501, connect(server).write("PROPFIND").write("X" * 60).write(" / HTTP/1.1\r\nhost: a\r\n\r\n").answer.status
  end

  def test_no_more_streams_than_allowed
    server = serve(APP, "--http2-streams", "7")

    assert_match(/SETTINGS_MAX_CONCURRENT_STREAMS\(0x03\):7\]/, nghttp(server, "/", options: ["-v"])[/recv SETTINGS.*?^\[/m])
  end

  private

  # Protocol that the server selects from these.
  def agreed(server, protocols)
    context = OpenSSL::SSL::SSLContext.new
    context.alpn_protocols = protocols if protocols
    tcp = TCPSocket.new("127.0.0.1", server.port)
    OpenSSL::SSL::SSLSocket.new(tcp, context).tap(&:connect).alpn_protocol
  ensure
    tcp&.close
  end
end
