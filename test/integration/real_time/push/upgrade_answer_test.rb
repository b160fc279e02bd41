# frozen_string_literal: true

require "test_helper"
require "rack"
require "support/real_time"

# The application's response to a request that it upgrades: its header is sent, its body is not, and code that runs after a
# response still runs.
class UpgradeAnswerTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_the_header_of_the_application_comes_with_the_handshake
    cookies = Gem::Version.new(Rack.release) >= Gem::Version.new("3") ? %w[a=1 b=2] : "a=1\nb=2"
    server = pushing("", headers: { "x-trace" => "7", "set-cookie" => cookies })

    client = web_socket(server)
    assert_equal ["7", %w[a=1 b=2]], [client["x-trace"], client.fields.select { |name, _| name == "set-cookie" }.map(&:last)]
    stream = event_stream(server)
    assert_equal ["7", %w[a=1 b=2]], [stream["x-trace"], stream.fields.select { |name, _| name == "set-cookie" }.map(&:last)]
  end

  def test_the_application_chooses_the_sub_protocol
    server = serve(unlinted(<<~RUBY))
      env["rack.upgrade"] = Object.new
      offered = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(", ")
      [200, offered.include?("chat") ? { "sec-websocket-protocol" => "chat" } : {}, []]
    RUBY

    assert_equal "chat", web_socket(server, protocols: %w[other chat]).protocol
    assert_nil web_socket(server).protocol
  end

  # Fields that would turn it into a second body or handshake.
  def test_fields_of_the_answer_that_belong_to_the_handshake_or_a_body_are_left_out
    server = pushing("def on_open(client) = client.write('open')", headers: {
                       "content-length" => "5", "transfer-encoding" => "chunked", "connection" => "close", "upgrade" => "other",
                       "sec-websocket-accept" => "mine", "rack.hidden" => "x"
                     })
    client = web_socket(server)

    assert_equal [:text, "open"], client.receive
    assert_equal %w[upgrade websocket], client.fields.assoc("upgrade").map(&:downcase)
    assert_nil client["rack.hidden"]
  end

  def test_a_field_that_would_split_the_answer_is_never_sent
    server = pushing("", headers: { "x-split" => "a\r\nx-evil: 1", "x-null" => "a\0", "x-good" => "1" })

    [web_socket(server), event_stream(server)].each do |client|
      assert_equal [nil, nil, "1"], [client["x-evil"], client["x-null"], client["x-good"]]
    end
    wait_until("log lines") { server.stderr.scan(/field .* was left out/).size == 2 }
  end

  def test_the_body_is_closed_and_not_sent
    server = serve(linted(<<~RUBY))
      env["rack.upgrade"] = Class.new { def self.on_open(client) = client.write("open") }
      [200, { "content-type" => "text/plain" }, Rack::BodyProxy.new(["body"]) { Notes.add("closed") }]
    RUBY

    assert_equal [:text, "open"], web_socket(server).receive
    assert_equal ["closed"], wait_for_notes(server, 1)
    assert_equal "open", event_stream(server).receive.data
    assert_equal %w[closed closed], wait_for_notes(server, 2)
  end

  def test_what_runs_after_an_answer_runs_after_the_handshake
    server = serve(unlinted(<<~RUBY))
      env["rack.upgrade"] = Object.new
      env["rack.after_reply"] << -> { Notes.add("reply") }
      env["rack.response_finished"] << ->(seen, _status, headers, error) { Notes.add([seen.equal?(env), headers, error].inspect) }
      [200, { "x" => "y" }, []]
    RUBY
    web_socket(server)

    assert_equal ["reply", [true, { "x" => "y" }, nil].inspect], wait_for_notes(server, 2)
  end

  def test_under_rack_lint
    server = serve(linted(<<~RUBY))
      env["rack.upgrade"] = Class.new { def self.on_message(client, data) = client.write(data) }
      [200, { "content-type" => "text/plain" }, []]
    RUBY

    assert_equal [:text, "linted"], web_socket(server).send_text("linted").receive
  end

  def test_an_exception_behind_the_decision_is_an_error_of_the_server
    server = serve(unlinted("env['rack.upgrade'] = Object.new; raise 'no'"))

    assert_equal 500, get(server, "/", Fairlead::Test::WebSocket::Handshake::FIELDS).status
  end

  def test_the_handshake_is_in_the_access_log
    server = pushing("", "-v")
    web_socket(server, "/socket")
    event_stream(server, "/stream")

    server.wait_for_output(%r{"GET /socket HTTP/1\.1" 101 })
    server.wait_for_output(%r{"GET /stream HTTP/1\.1" 200 }) if server.stdout.include?("/stream")
  end
end
