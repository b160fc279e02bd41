# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# `rack.upgrade?` and `rack.upgrade`: requests that can become a WebSocket or an event stream, and the application's response
# to them.
class NegotiationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  WEB_SOCKET = Fairlead::Test::WebSocket::Handshake::FIELDS

  # Fields of a request => possible upgrade.
  OFFERS = {
    {} => nil,
    { "accept" => "*/*" } => nil,
    { "accept" => "text/html,application/xhtml+xml,*/*;q=0.8" } => nil,
    { "accept" => "text/event-stream" } => :sse,
    WEB_SOCKET => :websocket,
    WEB_SOCKET.merge("connection" => "keep-alive, Upgrade") => :websocket,
    WEB_SOCKET.merge("upgrade" => "WebSocket") => :websocket,
    WEB_SOCKET.merge("sec-websocket-version" => "8") => nil,
    WEB_SOCKET.merge("sec-websocket-key" => "short") => nil,
    WEB_SOCKET.merge("connection" => "keep-alive") => nil,
    WEB_SOCKET.merge("upgrade" => "h2c") => nil,
    # Like Java's HttpClient and `curl --http2`.
    { "accept" => "text/event-stream", "connection" => "Upgrade, HTTP2-Settings", "upgrade" => "h2c" } => :sse,
    { "accept" => "text/event-stream", "connection" => "upgrade", "upgrade" => "h2c, other/1" } => :sse,
    WEB_SOCKET.merge("accept" => "text/event-stream") => :websocket,
    WEB_SOCKET.merge("accept" => "text/event-stream", "sec-websocket-version" => "8") => nil
  }.freeze

  def test_a_request_says_what_it_can_become
    client = connect(serve(linted(<<~RUBY)))
      [200, { "content-type" => "text/plain" }, [[env.key?("rack.upgrade?"), env["rack.upgrade?"]].inspect]]
    RUBY

    OFFERS.each { |fields, offer| assert_equal [true, offer].inspect, client.get("/", fields).body, fields.to_s }
  end

  def test_only_get_can_become_something_else
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env['rack.upgrade?'].inspect]]"))

    [WEB_SOCKET, { "accept" => "text/event-stream" }].each do |fields|
      assert_equal "nil", ask(server, "POST", "/", fields).body
    end
    assert_equal "nil", connect(server).write("GET / HTTP/1.0\r\n#{WEB_SOCKET.map { |pair| "#{pair.join(": ")}\r\n" }.join}\r\n").answer.body
  end

  def test_a_request_that_is_not_taken_up_is_answered_like_any_other
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ['page']]"))
    client = connect(server)

    [WEB_SOCKET, { "accept" => "text/event-stream" }, {}].each { |fields| assert_equal "page", client.get("/", fields).body }
  end

  def test_a_status_from_300_refuses_with_the_answer_as_it_is
    server = serve(linted(<<~RUBY))
      env["rack.upgrade"] = Class.new { def self.on_open(_) = Notes.add("open") }
      status = env["QUERY_STRING"].to_i
      [status, { "content-type" => "text/plain", "location" => "/login" }, ["refused"]]
    RUBY
    client = connect(server)

    [302, 401, 404, 500].product([WEB_SOCKET, { "accept" => "text/event-stream" }]) do |status, fields|
      answer = client.get("/?#{status}", fields)
      assert_equal [status, "/login", "refused"], [answer.status, answer["location"], answer.body]
    end
    assert_empty notes(server)
  end

  def test_any_status_below_300_takes_it_up
    server = serve(unlinted(<<~RUBY))
      env["rack.upgrade"] = Class.new { def self.on_open(client) = client.write("here") }
      [env["QUERY_STRING"].to_i, {}, ["not sent"]]
    RUBY

    [0, 101, 200, 204, 299].each do |status|
      assert_equal [:text, "here"], web_socket(server, "/?#{status}").receive
      stream = event_stream(server, "/?#{status}")
      assert_equal [200, "here"], [stream.status, stream.receive.data]
    end
  end

  def test_a_handler_for_a_plain_request_is_ignored
    server = serve(linted(<<~RUBY))
      env["rack.upgrade"] = Class.new { def self.on_open(_) = Notes.add("open") }
      [200, { "content-type" => "text/plain" }, ["plain"]]
    RUBY

    assert_equal "plain", get(server).body
    assert_empty notes(server)
  end

  def test_a_status_of_0_never_reaches_a_client
    server = serve(unlinted("env['rack.upgrade'] = Object.new; [0, {}, []]"))

    assert_includes 400..599, get(server).status
  end

  def test_frames_on_the_heels_of_the_handshake_are_not_lost
    server = pushing("def on_message(client, data) = client.write(data)")
    head = "GET / HTTP/1.1\r\nhost: a\r\n#{WEB_SOCKET.map { |pair| "#{pair.join(": ")}\r\n" }.join}\r\n"
    frames = %w[one two].map { |text| Fairlead::Test::WebSocket::Frames.build(1, text) }.join
    client = connect(server).write(head + frames)

    assert_equal 101, client.answer.status
    assert_equal "\x81\x03one\x81\x03two".b, client.read(10)
  end

  def test_over_a_unix_socket
    server = launch(<<~RUBY, "-b", "unix://app.sock", bind: nil, &:start)
      run ->(env) { env["rack.upgrade"] = Class.new { def self.on_message(client, data) = client.write(data) }; [200, {}, []] }
    RUBY
    client = adopt_web_socket(Fairlead::Test::WebSocket.over(UNIXSocket.new(server.path("app.sock"))))

    assert_equal [:text, "hello"], client.send_text("hello").receive
    client.close(1000)
    assert_equal 1000, client.receive_close.first
    assert client.ended?
  end

  def test_a_keep_alive_connection_becomes_a_web_socket
    server = pushing("def on_message(client, data) = client.write(data)")
    socket = TCPSocket.new("127.0.0.1", server.port)
    3.times { assert_equal "plain", adopt(socket).get.body }
    client = adopt_web_socket(Fairlead::Test::WebSocket.over(socket))

    assert_equal [:text, "hello"], client.send_text("hello").receive
  end
end
