# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The response with an event stream: its header, its framing in each version of HTTP, and its end.
class EventStreamsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  OPEN = "def on_open(client) = client.write('open')\ndef on_close(client) = Notes.add('closed')"

  def test_the_header_tells_clients_and_proxies_what_it_is
    stream = event_stream(pushing(OPEN))

    assert_equal 200, stream.status
    assert_match(%r{\Atext/event-stream(; ?charset=utf-8)?\z}, stream["content-type"])
    assert_equal %w[no-cache no chunked], [stream["cache-control"], stream["x-accel-buffering"], stream["transfer-encoding"]]
    assert_nil stream["content-length"]
    assert_equal 1, stream.fields.count { |name, _| name == "content-type" }
  end

  def test_the_application_may_have_its_own_header
    server = pushing(OPEN, headers: { "content-type" => "text/plain", "cache-control" => "no-store", "content-length" => "3", "x-own" => "1" })
    stream = event_stream(server)

    assert_equal "open", stream.receive.data
    assert_match(%r{\Atext/event-stream}, stream["content-type"])
    assert_equal ["no-store", "1", nil], [stream["cache-control"], stream["x-own"], stream["content-length"]]
  end

  def test_a_client_of_http_1_0_gets_it_until_the_connection_ends
    server = pushing("#{OPEN}\ndef on_drained(client) = client.close")
    stream = event_stream(server, version: "1.0")

    assert_nil stream["transfer-encoding"]
    assert_equal "open", stream.receive.data
    assert_equal :closed, stream.end_of_stream
  end

  # A client keeps a connection for its next request unless the server announces its end.
  def test_the_end_of_the_connection_is_announced
    server = pushing("#{OPEN}\ndef on_drained(client) = client.close")

    %w[1.0 1.1].each do |version|
      stream = event_stream(server, version: version)

      assert_equal "close", stream["connection"], version
      stream.end_of_stream
    end
  end

  def test_a_closed_stream_ends_with_its_last_chunk
    server = pushing("def on_open(client) = (client.write('one'); client.write('two'); client.close)\ndef on_close(client) = Notes.add('closed')")
    stream = event_stream(server)

    assert_equal %w[one two], [stream.receive.data, stream.receive.data]
    assert_equal :last_chunk, stream.end_of_stream
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  def test_a_head_request_gets_the_header_alone
    server = pushing(OPEN)
    client = connect(server)
    answer = client.request("HEAD", "/", { "accept" => "text/event-stream" }).answer(to: "HEAD")

    assert_equal 200, answer.status
    assert_equal "plain", client.get.body
  end

  # An EventSource sends nothing on its stream. Bytes from the client are not a request.
  def test_bytes_from_the_client_are_no_requests
    server = pushing(OPEN)
    stream = event_stream(server)
    stream.receive
    stream.socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 3)

    assert_served(server)
    assert_raises(Fairlead::Test::EventStream::Ended, Fairlead::Test::Waiting::Expired) { stream.receive(0.5) }
  end

  def test_no_message_reaches_the_handler_of_a_stream
    server = pushing("#{OPEN}\ndef on_message(client, data) = Notes.add('message')")
    stream = event_stream(server)
    stream.receive
    stream.socket.write("data: x\n\n" * 1000)

    3.times { assert_served(server) }
    assert_equal [], notes(server) - ["closed"]
  end

  def test_a_stream_is_not_ended_by_the_time_outs_of_answers
    server = pushing("#{OPEN}\ndef on_message(*) = nil", "--keep-alive-timeout", 1, "--write-timeout", 1, "--head-timeout", 1, "--ping-interval", 0)
    stream = event_stream(server)
    stream.receive

    assert stream.silent?(3)
    assert_empty notes(server)
  end
end
