# frozen_string_literal: true

require "test_helper"
require "zlib"
require "support/processes"
require "support/real_time"

# Hostile peers that obey the protocol: each is disconnected, the server's memory stays constant, and others are served at
# the same time.
class WebSocketFloodsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Processes

  FRAMES = Fairlead::Test::WebSocket::Frames
  ECHO = "def on_message(client, data) = client.write(data.bytesize)"
  ROOM = 30_000_000

  def test_pings_without_end
    server = pushing(ECHO, "-t", 1)
    flooded(server, FRAMES.build(9, "x" * 125) * 1000) { |client| assert_equal 1008, client.receive_close.first }
  end

  def test_pongs_without_end
    server = pushing(ECHO, "-t", 1)
    flooded(server, FRAMES.build(10, "") * 1000) { |client| assert_equal 1008, client.receive_close.first }
  end

  def test_as_many_pings_as_allowed
    client = web_socket(pushing(ECHO, "--max-pings", 50))
    50.times { |number| client.ping(number.to_s) }

    assert_equal ("0".."49").to_a, Array.new(50) { client.receive_pong }
    assert_equal [:text, "5"], client.send_text("still").receive
  end

  def test_fragments_without_end
    server = pushing(ECHO, "-t", 1)
    fragments = FRAMES.build(0, "x" * 1000, fin: false) * 100
    flooded(server, fragments, first: FRAMES.build(1, "x", fin: false)) { |client| assert_includes [1008, 1009], client.receive_close.first }
  end

  def test_empty_fragments_without_end
    server = pushing(ECHO, "-t", 1)
    fragments = FRAMES.build(0, "", fin: false) * 10_000
    flooded(server, fragments, first: FRAMES.build(1, "x", fin: false)) { |client| assert_includes [1008, 1009], client.receive_close.first }
  end

  def test_a_frame_as_large_as_it_pretends_to_be
    server = pushing(ECHO, "-t", 1, "--message-max-bytes", "1m")
    flooded(server, "x" * 100_000, first: FRAMES.build(2, "", length: 1 << 40)) { |client| assert_equal 1009, client.receive_close.first }
  end

  def test_a_message_that_is_small_only_while_it_is_compressed
    server = pushing(ECHO, "-t", 1, "--message-max-bytes", "1m")
    web_socket(server, deflate: true).send_text("warm").receive
    before = memory(server.serving_pid)
    bomb = Zlib::Deflate.new(9, -15).then { |deflate| deflate.deflate("\0" * 200_000_000, Zlib::SYNC_FLUSH).delete_suffix("\x00\x00\xFF\xFF".b) }
    clients = Array.new(3) { web_socket(server, deflate: true) }
    clients.each { |client| send_in_vain(client, FRAMES.build(2, bomb, rsv: 4)) }

    assert_equal [1009], clients.map { |client| client.receive_close.first }.uniq
    assert_operator memory(server.serving_pid) - before, :<, ROOM
    assert_logged(server, 3)
  end

  # Longest time for the messages of twenty clients, in seconds: a gigabyte is inflated.
  PATIENCE = 120

  # A client that waits for another one answers no pings.
  UNHURRIED = ["--ping-interval", 0].freeze

  # Each message is within the limit, and one read holds sixty of them: messages without room stay compressed.
  def test_many_messages_that_are_small_only_while_they_are_compressed
    slow = "def on_message(client, data) = (sleep 0.002; client.write(data.bytesize))"
    server = pushing(slow, "-t", 1, "--messages-pending-bytes", "16m", *UNHURRIED)
    assert_inflated_in_turn(server) do |clients|
      clients.each { |client| assert_equal ["1048576"], client.receive_all(55, PATIENCE).uniq }
    end
  end

  # No handler wants them, and the server keeps nothing of them.
  def test_many_such_messages_without_a_handler_for_them
    server = pushing("def on_close(client) = nil", "-t", 1, *UNHURRIED)
    assert_inflated_in_turn(server) do |clients|
      clients.each do |client|
        client.ping("behind them")

        assert_equal "behind them", client.receive_pong(PATIENCE)
      end
    end
  end

  # 500 silent peers, each in the middle of the largest possible frame, of which they have sent only the head.
  def test_announced_frames_take_no_memory_before_they_come
    server = pushing(ECHO, "-t", 1, "--message-max-bytes", "8m")
    web_socket(server).send_text("warm").receive
    before = memory(server.serving_pid)
    clients = Array.new(500) { web_socket(server).send_raw(FRAMES.build(2, "x", length: 8_000_000)) }

    assert_served(server, web_socket(server))
    assert_operator memory(server.serving_pid) - before, :<, ROOM
    clients.each(&:drop)
  end

  def test_handshakes_that_are_left_at_once
    server = pushing("#{ECHO}\ndef on_close(client) = Notes.add('closed')", "-t", 1)
    before = descriptors(server.serving_pid)
    200.times { web_socket(server).drop(reset: true) }

    wait_for_notes(server, 200)
    wait_until("the descriptors to be closed") { descriptors(server.serving_pid) <= before + 1 }
    assert_served(server)
  end

  private

  # Twenty clients send 55 MiB each, in 57 KB of frames. Uncollected garbage counts, too.
  def assert_inflated_in_turn(server)
    clients = Array.new(20) { web_socket(server, deflate: true) }
    before = memory(server.serving_pid)
    messages = FRAMES.build(2, clients.first.deflate.compress("\0" * (1 << 20)), rsv: 4) * 55
    clients.each { |client| client.send_raw(messages) }
    yield clients
    most = peak_memory(server.serving_pid) - before

    assert_operator most, :<, 5 * ROOM
  end

  # Sends +bytes+ repeatedly, until the server disconnects; others are served at the same time.
  def flooded(server, bytes, first: "")
    other = web_socket(server)
    assert_served(server, other)
    before = memory(server.serving_pid)
    client = web_socket(server)
    client.answers_pings = false
    client.send_raw(first)
    flood = Thread.new { 1000.times.find { !send_in_vain(client, bytes) } }
    3.times { assert_served(server, other) }
    yield client
    assert client.ended?
    assert_operator memory(server.serving_pid) - before, :<, ROOM
    assert_logged(server, 1)
    flood.join
  end

  # Returns true if the bytes could be sent.
  def send_in_vain(client, bytes)
    client.send_raw(bytes)
    true
  rescue SystemCallError
    false
  end
end
