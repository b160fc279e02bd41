# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Peers that violate RFC 6455 or exceed limits: the close code tells the reason, the connection ends, the log has one line,
# and no other client is affected.
class ViolationsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  FRAMES = Fairlead::Test::WebSocket::Frames
  LIMIT = 100_000

  # Sent bytes => close code of the server (RFC 6455 §7.4.1).
  VIOLATIONS = {
    "an unmasked frame" => [1002, FRAMES.build(1, "x", masked: false)],
    "an unmasked ping" => [1002, FRAMES.build(9, "", masked: false)],
    "a reserved bit" => [1002, FRAMES.build(1, "x", rsv: 1)],
    "another reserved bit" => [1002, FRAMES.build(1, "x", rsv: 2)],
    "compression that was not agreed upon" => [1002, FRAMES.build(1, "x", rsv: 4)],
    "an unknown opcode" => [1002, FRAMES.build(3, "x")],
    "an unknown control opcode" => [1002, FRAMES.build(11, "x")],
    "a ping in fragments" => [1002, FRAMES.build(9, "x", fin: false)],
    "a ping of 126 bytes" => [1002, FRAMES.build(9, "x" * 126)],
    "a continuation of nothing" => [1002, FRAMES.build(0, "x")],
    "a message inside another" => [1002, FRAMES.build(1, "x", fin: false) + FRAMES.build(1, "y")],
    "a length of 7 bits in 16" => [1002, [0x81, 0xfe, 5].pack("CCn") + "\0" * 9],
    "a length of 16 bits in 64" => [1002, [0x81, 0xff, 500].pack("CCQ>") + "\0" * 504],
    "a length with the highest bit" => [1002, [0x81, 0xff, 1 << 63].pack("CCQ>")],
    "a close frame of one byte" => [1002, FRAMES.build(8, "x")],
    "a close code below 1000" => [1002, FRAMES.build(8, [999].pack("n"))],
    "a close code that is never sent" => [1002, FRAMES.build(8, [1006].pack("n"))],
    "a close code without a meaning" => [1002, FRAMES.build(8, [2999].pack("n"))],
    "a close code above 4999" => [1002, FRAMES.build(8, [5000].pack("n"))],
    "a reason that is not UTF-8" => [1007, FRAMES.build(8, "\x03\xe8\xff")],
    "a text that is not UTF-8" => [1007, FRAMES.build(1, "ab\xff")],
    "an overlong encoding" => [1007, FRAMES.build(1, "\xc0\xaf")],
    "a surrogate" => [1007, FRAMES.build(1, "\xed\xa0\x80")],
    "a code point too high" => [1007, FRAMES.build(1, "\xf4\x90\x80\x80")],
    "a text that ends in a character" => [1007, FRAMES.build(1, "\xe2\x82")],
    "a text that goes wrong in its second fragment" => [1007, FRAMES.build(1, "\xe2", fin: false) + FRAMES.build(0, "\x28\xa1")],
    "a length beyond the limit" => [1009, FRAMES.build(2, "", length: LIMIT + 1)],
    "a length far beyond it" => [1009, FRAMES.build(2, "", length: (1 << 63) - 1)],
    "fragments beyond the limit" => [1009, FRAMES.build(2, "x" * 60_000, fin: false) + FRAMES.build(0, "x" * 60_000)]
  }.freeze

  ECHO = <<~RUBY
    def on_message(client, data) = client.write(data)
    def on_close(client) = Notes.add("closed \#{client.env["PATH_INFO"]}")
  RUBY

  def test_every_violation_has_its_code
    server = pushing(ECHO, "--message-max-bytes", LIMIT)
    other = web_socket(server)
    VIOLATIONS.each_with_index do |(what, (code, bytes)), index|
      client = web_socket(server, "/#{index}")
      client.send_raw(bytes)

      assert_equal code, client.receive_close.first, what
      assert client.ended?, what
      assert_served(server, other)
    end
    assert_equal VIOLATIONS.keys.each_index.map { |index| "closed /#{index}" }.sort, wait_for_notes(server, VIOLATIONS.size).sort
    assert_logged(server, VIOLATIONS.size)
  end

  def test_a_violation_in_the_middle_of_other_frames_is_found_behind_them
    server = pushing("def on_message(client, data) = Notes.add(data)\ndef on_close(client) = Notes.add('closed')")
    client = web_socket(server)
    client.send_raw(FRAMES.build(1, "one") + FRAMES.build(9, "two") + FRAMES.build(1, "\xff") + FRAMES.build(1, "three"))

    assert_equal 1007, client.receive_close.first
    assert_equal ["two"], client.pongs
    assert client.ended?
    assert_equal %w[one closed], wait_for_notes(server, 2)
  end

  def test_what_was_said_before_a_violation_is_answered_first
    client = web_socket(pushing("def on_message(client, data) = sleep(0.1) && client.write(data)"))
    client.send_raw(FRAMES.build(1, "one") + FRAMES.build(1, "two") + FRAMES.build(3, "") + FRAMES.build(1, "three"))

    assert_equal %w[one two], client.receive_all(2)
    assert_equal 1002, client.receive_close.first
    assert client.ended?
  end

  def test_a_violation_is_found_before_the_frame_is_whole
    server = pushing(ECHO)
    client = web_socket(server)
    client.send_raw(FRAMES.build(1, "\xff#{"x" * 5000}").byteslice(0, 100))

    assert_equal 1007, client.receive_close.first
  end

  # RFC 6455 §5.4, §5.5: control frames may come between fragments.
  def test_what_the_protocol_allows_is_taken
    client = web_socket(pushing(ECHO, "--message-max-bytes", LIMIT))
    client.send_frame(:text, "a€".byteslice(0, 2), fin: false).ping("between").send_frame(:continuation, "", fin: false)
    client.send_frame(:continuation, "a€".byteslice(2, 2))

    assert_equal [:text, "a€"], client.receive
    assert_equal ["between"], client.pongs
    client.pong("for nothing").send_binary("x" * LIMIT)
    assert_equal LIMIT, client.receive.last.bytesize
    client.close(3000, "r" * 123)
    assert_equal 3000, client.receive_close.first
  end

  def test_noise_ends_nothing_but_its_own_connection
    server = pushing(ECHO, "-t", 2)
    other = web_socket(server)
    noise = Random.new(Minitest.seed.to_i)
    frames = [FRAMES.build(1, "text"), FRAMES.build(2, "x" * 70_000), FRAMES.build(9, "ping"), FRAMES.build(1, "half", fin: false)]
    200.times { |number| make_noise(web_socket(server, "/#{number}", deflate: number.odd?), frames.sample(random: noise), noise) }

    wait_for_notes(server, 200)
    assert_served(server, other)
    refute_includes server.stderr, "[BUG]"
  end

  def test_a_message_may_come_byte_by_byte
    client = web_socket(pushing(ECHO))
    FRAMES.build(1, "häppchen").each_char { |byte| client.send_raw(byte) }

    assert_equal [:text, "häppchen"], client.receive
  end

  # Close codes that a peer may send come back as they are (RFC 6455 §5.5.1).
  def test_a_goodbye_is_answered_with_the_same_code
    server = pushing(ECHO)
    [1000, 1001, 1003, 1011, 1014, 3000, 4999].each do |code|
      client = web_socket(server)
      client.close(code, "reason")

      assert_equal code, client.receive_close.first
      assert client.ended?
    end
    assert_empty log_lines(server)
  end

  def test_what_comes_behind_a_goodbye_is_not_heard
    server = pushing("def on_message(client, data) = Notes.add(data)\ndef on_close(client) = Notes.add('closed')")
    client = web_socket(server)
    client.send_raw(FRAMES.build(1, "one") + FRAMES.build(8, [1000].pack("n")) + FRAMES.build(1, "two"))

    assert_equal 1000, client.receive_close.first
    assert client.ended?
    assert_equal %w[one closed], wait_for_notes(server, 2)
  end

  private

  # A frame with a few changed bytes, then random bytes, then silence.
  def make_noise(client, frame, noise)
    4.times { frame.setbyte(noise.rand([frame.bytesize, 20].min), noise.rand(256)) }
    client.send_raw(frame + noise.bytes(noise.rand(2000)))
    client.drop(reset: noise.rand(2).zero?)
  rescue SystemCallError
    client.drop
  end
end
