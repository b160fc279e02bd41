# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The server's own pings: they keep a quiet connection alive, and detect vanished peers.
class PingsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  CLOSING = "#{Fairlead::Test::RealTimeServing::CONSOLE}\ndef on_close(client) = Notes.add('closed')".freeze

  def test_a_quiet_client_is_asked_after_the_interval
    server = pushing(CLOSING, "--ping-interval", 1)
    client = nil
    seconds = seconds_of { (client = web_socket(server)).receive_ping }

    assert_operator seconds, :>=, 0.7
    2.times { client.receive_ping }
    assert_equal "2", told(client, "1 + 1")
    assert_empty notes(server)
  end

  def test_a_client_that_answers_nothing_is_let_go_after_two_intervals
    server = pushing(CLOSING, "--ping-interval", 1)
    seconds = seconds_of do
      client = web_socket(server)
      client.answers_pings = false

      assert_predicate client, :ended?
    end

    assert_operator seconds, :>=, 1.5
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  def test_half_a_frame_and_silence
    server = pushing(CLOSING, "--ping-interval", 1)
    client = web_socket(server)
    client.answers_pings = false
    client.send_raw(Fairlead::Test::WebSocket::Frames.build(1, "half a frame").byteslice(0, 9))

    assert client.ended?
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  def test_any_frame_is_a_sign_of_life
    server = pushing(CLOSING, "--ping-interval", 1)
    client = web_socket(server)
    client.answers_pings = false
    8.times do
      client.pong
      refute client.over?
      client.silent?(0.5) || client.take_in
    end

    assert_equal "2", told(client, "1 + 1")
  end

  def test_a_client_can_have_an_interval_of_its_own
    server = pushing(CLOSING, "--ping-interval", 200)
    client = web_socket(server)
    assert_equal "1", told(client, "client.timeout = 1")

    client.receive_ping
    assert_equal "0", told(client, "client.timeout = 0")
    client.pings.clear
    assert client.silent?(2.5)
  end

  def test_no_interval_means_no_pings
    client = web_socket(pushing(CLOSING, "--ping-interval", 0))

    assert client.silent?(2)
    assert_equal "0", told(client, "client.timeout")
  end

  def test_pings_go_on_while_all_threads_are_busy
    server = pushing("def on_message(client, data) = (sleep 0.01 until File.exist?('go'); client.write('done'))", "-t", 1, "--ping-interval", 1)
    busy, idle = Array.new(2) { web_socket(server) }
    busy.send_text("work")
    Fairlead::Test::WebSocket::Pool.new([busy, idle]).wait_for("two pings") { idle.pings.size > 1 }
    server.write("go", "")

    assert_equal [:text, "done"], busy.receive
  end

  def test_event_streams_get_comments
    stream = event_stream(pushing("", "--ping-interval", 1))

    2.times { stream.receive_comment }
    assert_empty stream.events
  end
end
