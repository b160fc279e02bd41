# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Persistence of connections (RFC 9112 §9.3), and bytes behind the last request.
class KeepAliveTest < Minitest::Test
  include Fairlead::Test::HttpServing

  HELLO = <<~'RUBY'
    body = "hello #{env["rack.input"].read}"
    [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
  RUBY

  # Request => true if the connection persists.
  PERSISTENCE = {
    "GET / HTTP/1.1\r\nhost: a\r\n\r\n" => true,
    "GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive\r\n\r\n" => true,
    "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" => false,
    "GET / HTTP/1.1\r\nhost: a\r\nConnection: CLOSE\r\n\r\n" => false,
    "GET / HTTP/1.1\r\nhost: a\r\nconnection: x, close\r\n\r\n" => false,
    "GET / HTTP/1.1\r\nhost: a\r\nconnection: x\r\nconnection: close\r\n\r\n" => false,
    "GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, close\r\n\r\n" => false,
    "GET / HTTP/1.0\r\nhost: a\r\n\r\n" => false,
    "GET / HTTP/1.0\r\nhost: a\r\nconnection: close\r\n\r\n" => false,
    "GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n" => true,
    "GET / HTTP/1.0\r\nhost: a\r\nConnection: Keep-Alive\r\n\r\n" => true
  }.freeze

  def test_a_connection_persists_exactly_when_version_and_connection_field_say_so
    server = serve(linted(HELLO))

    PERSISTENCE.each do |request, persists|
      client = connect(server)
      answer = client.write(request).answer
      assert_equal "hello ", answer.body, request
      if persists
        assert_includes [nil, "keep-alive"], answer["connection"], request
        assert_equal 200, client.get.status, request
      else
        assert_equal "close", answer["connection"], request
        assert_predicate client, :closed?, request
      end
    end
  end

  def test_a_persistent_answer_to_a_client_of_1_0_says_so
    server = serve(linted(HELLO))

    answer = connect(server).write("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").answer

    assert_equal "keep-alive", answer["connection"]
    assert_equal "HTTP/1.1", answer.version
  end

  def test_a_connection_serves_many_requests_with_and_without_bodies
    server = serve(linted(HELLO))
    client = connect(server)

    100.times do |index|
      body = "x" * (index % 3)
      assert_equal "hello #{body}", client.request("POST", "/", {}, body: body).answer.body
    end
  end

  def test_a_connection_carries_no_more_requests_than_max_keep_alive
    server = serve(linted(HELLO), "--max-keep-alive", 3)
    client = connect(server)

    assert_equal [nil, nil, "close"], Array.new(3) { client.get["connection"] }
    assert_predicate client, :closed?
  end

  def test_without_keep_alives_each_answer_ends_its_connection
    server = serve(linted(HELLO), "--no-enable-keep-alives")

    ["1.1", "1.0"].each do |version|
      client = connect(server).write("GET / HTTP/#{version}\r\nhost: a\r\nconnection: keep-alive\r\n\r\n")
      assert_equal "close", client.answer["connection"]
      assert_predicate client, :closed?
    end
  end

  def test_a_method_that_is_not_served_is_refused
    server = serve(linted(HELLO), "-C", "config.rb", files: { "config.rb" => "supported_http_methods %w[GET POST]" })

    assert_equal [200, 200, 501, 501], %w[GET POST DELETE PROPFIND].map { |method| ask(server, method).status }
    assert_logged("refused 501 (method not supported)", server)
  end

  def test_the_application_may_end_the_connection
    server = serve(linted('[200, { "content-type" => "text/plain", "connection" => "close" }, ["bye"]]'))
    client = connect(server)

    answer = client.get

    assert_equal "bye", answer.body
    assert_equal "close", answer["connection"]
    assert_predicate client, :closed?
  end

  def test_what_comes_behind_a_request_with_close_is_not_served_and_does_not_cost_the_answer
    server = serve(linted("Notes.add(env['PATH_INFO'])\n#{HELLO}"))
    client = connect(server)

    client.write("GET /1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\n#{"x" * 100_000}")

    assert_equal "hello ", client.answer.body
    assert_predicate client, :closed?
    assert_equal ["/1"], notes(server)
  end

  def test_a_client_that_half_closes_still_gets_every_answer
    server = serve(linted(HELLO))
    client = connect(server)

    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 3)
    client.half_close

    3.times { assert_equal "hello ", client.answer.body }
    assert_predicate client, :closed?
  end

  def test_a_client_that_half_closes_inside_a_request_is_let_go_and_the_application_never_asked
    server = serve(linted("Notes.add(1)\n#{HELLO}"))

    ["GET / HT", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nabc"].each do |part|
      client = connect(server)
      client.write(part)
      client.half_close
      assert_predicate client, :closed?, part
    end
    assert_empty notes(server)
  end

  def test_an_empty_line_before_a_request_is_ignored
    server = serve(linted(HELLO))
    client = connect(server)

    client.write("\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n")

    2.times { assert_equal 200, client.answer.status }
  end
end
