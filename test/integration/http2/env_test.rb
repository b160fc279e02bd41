# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/http_client"
require "support/http2_commands"
require "support/rack_apps"

# The env of a request over HTTP/2, and the actions that are not allowed.
class Http2EnvTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::HttpClients
  include Fairlead::Test::RackApps
  include Fairlead::Test::Secured

  ENV_OF = "[200, { 'content-type' => 'text/plain' }, [JSON.generate(env.select { |_, value| !value || value == true || value.is_a?(String) })]]"
  BODY = "[200, { 'content-type' => 'text/plain' }, [JSON.generate([env['rack.input'].read, env['CONTENT_LENGTH'], env.keys.grep(/SUM/)])]]"

  def test_the_usual_request
    server = serve(linted(ENV_OF))
    env = JSON.parse(curl(server, "/a%20b?c=d", "-H", "te: trailers", "-H", "X-Name: value").body)

    assert_equal ["HTTP/2", "HTTP/2", "http", "GET", "/a%20b", "c=d"],
                 env.values_at("SERVER_PROTOCOL", "HTTP_VERSION", "rack.url_scheme", "REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
    assert_equal ["127.0.0.1:#{server.port}", "127.0.0.1", server.port.to_s, "127.0.0.1"],
                 env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR")
    assert_equal %w[trailers value], env.values_at("HTTP_TE", "HTTP_X_NAME")
    assert_equal [false, nil], env.values_at("rack.hijack?", "rack.hijack")
    assert_empty(env.keys.grep(/\A:|HTTP_:/))
  end

  def test_the_authority_is_the_host
    server = serve(linted("[200, {}, [env['HTTP_HOST'], ' ', env['SERVER_NAME'], ' ', env['SERVER_PORT']]]"))

    assert_equal "shop.example:81 shop.example 81", curl(server, "/", "-H", "host: shop.example:81").body
  end

  def test_crumbs_of_cookies_are_one_field
    server = serve(linted("[200, {}, [env['HTTP_COOKIE']]]"))

    assert_equal "a=1; b=2; c=3", nghttp(server, "/", options: ["-H", "cookie: a=1", "-H", "cookie: b=2", "-H", "cookie: c=3"])
  end

  def test_over_tls_the_scheme_is_https
    server = serve_tls(linted("[200, {}, [env.values_at('rack.url_scheme', 'HTTPS', 'SERVER_PROTOCOL', 'SSL_PROTOCOL').join(' ')]]"))
    output = run_command("curl", "--silent", "--http2", "--cacert", server.path("ca.pem"), "https://localhost:#{server.port}/")

    assert_equal "https on HTTP/2 TLSv1.3", output
  end

  def test_the_whole_body_comes_with_its_length_and_without_its_trailers
    server = serve(linted(BODY))
    text = server.write("text", "body" * 10_000)

    [[], ["--no-content-length"]].each do |options|
      output = nghttp(server, "/", options: ["--data", text, "--trailer", "x-sum: 1", *options])
      assert_equal [File.read(text), "40000", []], JSON.parse(output), options.first
    end
  end

  def test_a_proxy_says_for_whom_it_speaks
    remote = "run ->(env) { [200, {}, [env['REMOTE_ADDR'], ' ', env['rack.url_scheme']]] }"
    trusting = serve(remote, "--trusted-proxies", "127.0.0.1")
    forwarded = curl(trusting, "/", "-H", "x-forwarded-for: 192.0.2.9", "-H", "x-forwarded-proto: https")

    assert_equal "192.0.2.9 https", forwarded.body
  end

  # The preface follows the proxy's header; the head is a GET of "/" from "a" over http (RFC 7541, Appendix A).
  def test_a_proxy_says_for_whom_it_speaks_before_the_preface
    server = serve("run ->(env) { [200, {}, ['from ', env['REMOTE_ADDR'], '.']] }", bind: "tcp://127.0.0.1:0?proxy_protocol=v1")
    head = [0x82, 0x84, 0x86, 0x41, 1, 97].pack("C*")
    frames = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, head.bytesize, 1, 5, 0, 0, 0, 1].pack("C*") + head
    client = connect(server).write("#{"PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n".b}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n#{frames}")

    assert client.read_through("192.0.2.1.").end_with?("192.0.2.1.")
  end

  # Each request has its own fields, although they share a connection.
  def test_requests_of_one_connection_have_clients_of_their_own
    server = serve("run ->(env) { [200, {}, [env['REMOTE_ADDR']]] }", "--trusted-proxies", "127.0.0.1")
    seen = node(server, <<~JS)
      const asked = ["192.0.2.1", "192.0.2.2", undefined].map(address => ask("/", address ? { "x-forwarded-for": address } : {}))
      Promise.all(asked).then(responses => say(responses.map(([, , body]) => body)))
    JS

    assert_equal %w[192.0.2.1 192.0.2.2 127.0.0.1], seen
  end

  def test_what_gives_its_socket_away_gets_a_500_and_one_line
    server = serve(unlinted("[200, { 'rack.hijack' => ->(io) { io.close } }, []]"))
    answer = curl(server)

    assert_equal [500, "2"], [answer.status, answer.version]
    assert_logged(/GET \/: .*rack\.hijack is impossible over HTTP\/2/, server)
    assert_equal 1, server.stderr.lines.grep(/error in the application/).size
  end
end
