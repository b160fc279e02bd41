# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Server-sent events: the events for written objects, and the fields of a client that reconnects.
class EventsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  # Arguments of Client#write => received event: type, id, data, reconnection time.
  EVENTS = {
    "'one'" => [nil, nil, "one", nil],
    "'one', event: 'tick', id: '7', retry: 1500" => %w[tick 7 one 1500],
    "'one', event: :tick, id: 7" => ["tick", "7", "one", nil],
    "'first\nsecond'" => [nil, nil, "first\nsecond", nil],
    "\"first\\r\\nsecond\\rthird\"" => [nil, nil, "first\nsecond\nthird", nil],
    "\"ends\\n\"" => [nil, nil, "ends\n", nil],
    "\"\\n\\n\"" => [nil, nil, "\n\n", nil],
    "''" => [nil, nil, "", nil],
    "' space'" => [nil, nil, " space", nil],
    "': no comment'" => [nil, nil, ": no comment", nil],
    "'event: not one'" => [nil, nil, "event: not one", nil],
    "'zweite Zeile: äöü €'" => [nil, nil, "zweite Zeile: äöü €", nil],
    "42" => [nil, nil, "42", nil],
    "'<turbo-stream>\n  <p>\n</turbo-stream>', event: 'message'" => ["message", nil, "<turbo-stream>\n  <p>\n</turbo-stream>", nil]
  }.freeze

  def test_what_is_written_is_one_event
    server, stream = kept_stream
    EVENTS.each do |code, event|
      assert_equal "true", requested(server, "KEPT.first.write(#{code.gsub("\n", '\n').gsub("'", '"')})"), code
      assert_equal event, stream.receive.to_a, code
    end
  end

  # A line break in a field would begin another field.
  def test_no_field_can_make_another_one
    server, stream = kept_stream
    ['event: "a\ndata: evil"', 'id: "1\n\ndata: evil"', 'id: "1\r2"', 'event: "a\r\nb"'].each do |field|
      requested(server, "(KEPT.first.write('good', #{field}) rescue KEPT.first.write('good'))")

      assert_equal "good", stream.receive.data, field
    end
    requested(server, "KEPT.first.write('last')")
    assert_equal [nil, nil, "last", nil], stream.receive.to_a
  end

  def test_a_client_that_comes_back_says_what_it_has_seen
    server = pushing("def on_open(client) = client.write(client.env['HTTP_LAST_EVENT_ID'].inspect, id: 8)")
    stream = event_stream(server)

    assert_equal "nil", stream.receive.data
    again = event_stream(server, headers: { "last-event-id" => stream.last_event_id })
    assert_equal '"8"', again.receive.data
  end

  def test_what_is_published_is_an_event
    server = pushing("def on_open(client) = (client.subscribe('news'); client.write('open'))")
    streams = Array.new(3) { event_stream(server) }
    streams.each(&:receive)
    requested(server, "Fairlead.publish('news', \"two\\nlines\")")

    assert_equal ["two\nlines"] * 3, streams.map { |stream| stream.receive.data }
  end

  def test_events_keep_their_order
    server = pushing("def on_open(client) = 500.times { |n| client.write('x' * n, id: n) }")
    stream = event_stream(server)

    assert_equal (0...500).map { |n| [n.to_s, n] }, Array.new(500) { stream.receive }.map { |event| [event.id, event.data.size] }
  end

  def test_a_client_that_leaves_is_noticed
    server = pushing("def on_open(client) = client.write('open')\ndef on_close(client) = Notes.add([client.open?, client.write('x')].inspect)")
    stream = event_stream(server)
    stream.receive
    stream.drop

    assert_equal ["[false, false]"], wait_for_notes(server, 1)
  end

  def test_on_drained_comes_for_event_streams_too
    server = pushing("def on_open(client) = client.write('open')\ndef on_drained(client) = Notes.add(client.pending)")
    event_stream(server).receive

    assert_equal "0", wait_for_notes(server, 1).first
  end

  private

  # Returns a server that keeps its client for the code of requests, and that client.
  def kept_stream
    server = pushing("def on_open(client) = (KEPT << client; client.write('open'))", setup: "KEPT = []")
    stream = event_stream(server)
    assert_equal "open", stream.receive.data
    [server, stream]
  end
end
