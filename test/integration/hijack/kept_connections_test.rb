# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open3"
require "support/certificates"
require "support/http_client"
require "support/rack_apps"

# The connection of a streaming body that continues after #call: the response announces that the connection stays open, and
# it does.
class KeptConnectionsTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Secured

  parallelize_me!

  # "/stream" is written by its own thread, "/length" has a length, "/unfinished" ends before it is complete.
  APP = <<~'RUBY'
    PIECE = "x" * 50_000
    run lambda { |env|
      late = ->(&write) { ->(stream) { Thread.new { write.call(stream); stream.close } } }
      case env["PATH_INFO"]
      when "/stream" then [200, {}, late.call { |stream| 20.times { stream.write(PIECE); Thread.pass } }]
      when "/wait" then [200, {}, late.call { |stream| stream.write("a"); sleep 0.01 until File.exist?("go"); stream.write("b") }]
      when "/length" then [200, { "content-length" => "6" }, late.call { |stream| stream.write("abc"); stream.write("def") }]
      when "/short" then [200, { "content-length" => "6" }, late.call { |stream| stream.write("abc") }]
      when "/long" then [200, { "content-length" => "3" }, late.call { |stream| stream.write("abcdef"); stream.write("ghi") }]
      else [200, {}, ["#{env["REQUEST_METHOD"]} #{env["rack.input"].read}"]]
      end
    }
  RUBY

  def test_requests_follow_on_the_same_connection
    client = connect(serve(APP))
    3.times do
      answer = client.get("/stream")
      assert_equal ["chunked", nil, 1_000_000], [answer["transfer-encoding"], answer["connection"], answer.body.bytesize]
      assert_equal "POST more", client.request("POST", "/", body: "more").answer.body
    end
  end

  def test_a_request_that_is_sent_before_the_end_waits_for_it
    server = serve(APP)
    client = connect(server)
    client.request("GET", "/wait").read_through("1\r\na\r\n")
    client.request("POST", "/", body: "more").request("GET", "/stream").request
    server.write("go", "")

    assert_equal "1\r\nb\r\n0\r\n\r\n", client.read(11)
    assert_equal ["POST more", 1_000_000, "GET "], [client.answer.body, client.answer.body.bytesize, client.answer.body]
  end

  def test_requests_that_come_with_it_wait_too
    client = connect(serve(APP))
    client.write("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n" * 3)

    assert_equal [1_000_000] * 3, Array.new(3) { client.answer.body.bytesize }
  end

  def test_a_client_that_wants_the_connection_closed_is_told_so
    client = connect(serve(APP))
    client.request("GET", "/stream", { "connection" => "close" })

    assert_equal "close", client.answer["connection"]
    assert client.closed?
  end

  def test_the_connection_goes_on_behind_a_body_with_a_length
    client = connect(serve(APP))

    assert_equal %w[abcdef abc], [client.get("/length").body, client.get("/long").body]
    assert_equal "GET ", client.get.body
  end

  def test_a_body_that_is_too_short_ends_the_connection
    client = connect(serve(APP)).request("GET", "/short")
    client.read_through("\r\n\r\nabc")

    assert client.closed?
  end

  def test_an_idle_connection_behind_a_stream_is_closed_when_its_time_is_over
    client = connect(serve(APP, "--keep-alive-timeout", "1"))
    client.get("/stream")

    assert client.closed?
  end

  def test_a_drain_ends_the_connection_behind_the_stream
    server = serve(APP)
    client = connect(server)
    client.request("GET", "/wait").read_through("1\r\na\r\n")
    server.signal(:TERM)
    server.wait_for_output(/finishing open requests/)
    server.write("go", "")

    assert_equal "1\r\nb\r\n0\r\n\r\n", client.rest
    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_net_http_and_curl_use_the_connection_again
    server = serve(APP)
    Net::HTTP.start("127.0.0.1", server.port) do |http|
      http.max_retries = 0
      20.times { assert_equal [1_000_000, "POST x"], [http.get("/stream").body.bytesize, http.post("/", "x", "content-type" => "text/plain").body] }
    end
    urls = %w[/stream / /stream /].map { |path| "http://127.0.0.1:#{server.port}#{path}" }
    connects, = Open3.capture2("curl", "--silent", "-w", "%{stderr}%{num_connects}", *urls, err: %i[child out])

    assert_equal %w[1 0 0 0], connects.scan(/(?<=x|GET )\d/)
  end

  # The worker that runs the request often differs from the worker with the connection.
  def test_it_goes_on_over_tls_with_several_workers
    server = serve_tls(APP, "-w", "2", "-t", "1")
    4.times do
      client = adopt(relayed_tls_socket(server.port))
      6.times { assert_equal [1_000_000, "GET "], [client.get("/stream").body.bytesize, client.get.body] }
    end
  end
end
