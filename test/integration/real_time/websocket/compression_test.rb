# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# permessage-deflate (RFC 7692): the negotiation, and both sides' use of it.
class CompressionTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  ECHO = "def on_message(client, data) = client.write(data)"
  TEXT = "All of this is very much the same. " * 200

  def test_messages_are_compressed_in_both_directions
    client = web_socket(pushing(ECHO), deflate: true)
    3.times { assert_equal [:text, TEXT], client.send_text(TEXT).receive }
    assert_equal [:binary, TEXT.b], client.send_binary(TEXT).receive

    assert_equal 4, client.deflate.decompressed
    assert_operator client.deflate.compressed_bytes, :<, TEXT.bytesize
  end

  def test_nothing_is_compressed_for_a_client_that_did_not_offer_it
    client = web_socket(pushing(ECHO))

    assert_equal [:text, TEXT], client.send_text(TEXT).receive
    assert_nil client["sec-websocket-extensions"]
  end

  # Compressing 24 MB takes a quarter of a second. Another thread counts the milliseconds in which it can run during that
  # time.
  LARGE = <<~RUBY
    def on_message(client, data)
      message = Random.new(1).bytes(12_000_000).unpack1("H*")
      runs = 0
      counter = Thread.new { loop { sleep 0.001; runs += 1 } }
      sleep 0.01 until runs > 0
      before = runs
      client.write(message)
      meanwhile = runs - before
      counter.kill
      client.write(meanwhile.to_s)
    end
  RUBY

  # Longest time for that, in seconds.
  PATIENCE = 120

  def test_other_threads_run_while_a_large_message_is_compressed
    %w[message context].each do |deflate|
      client = web_socket(pushing(LARGE, "--deflate", deflate, "--time-slice", 0, "--client-pending-bytes", "64m"), deflate: true).send_text("go")
      message = client.receive(PATIENCE).last
      runs = client.receive.last.to_i

      assert_equal 24_000_000, message.bytesize
      # With the lock held, one run at most: between the last check and the write.
      assert_operator runs, :>=, 5, deflate
    end
  end

  def test_a_message_that_another_thread_changes_meanwhile_arrives_as_it_was
    client = web_socket(pushing(<<~RUBY), deflate: true).send_text("go")
      def on_message(client, data)
        message = "a" * 30_000_000
        changer = Thread.new { loop { message.setbyte(message.bytesize - 1, 98); sleep 0.001 } }
        client.write(message)
        changer.kill
      end
    RUBY
    message = client.receive.last

    assert_equal 29_999_999, message[..-2].count("a")
    assert_includes %w[a b], message[-1]
  end

  def test_it_can_be_switched_off
    client = web_socket(pushing(ECHO, "--deflate", "none"), deflate: true)

    assert_equal [:text, TEXT], client.send_text(TEXT).receive
    assert_nil client.deflate
  end

  def test_a_client_may_send_without_compression_although_it_was_agreed_upon
    client = web_socket(pushing(ECHO), deflate: true)

    assert_equal [:text, TEXT], client.send_text(TEXT, compress: false).receive
    assert_equal [:text, ""], client.send_text("").receive
  end

  def test_small_messages_are_left_as_they_are
    client = web_socket(pushing(ECHO, "--deflate-min-bytes", 1000), deflate: true)
    client.send_text("x" * 900).receive

    assert_equal 0, client.deflate.decompressed
    client.send_text("x" * 1100).receive
    assert_equal 1, client.deflate.decompressed
  end

  def test_the_context_is_kept_between_messages_if_so_configured
    client = web_socket(pushing(ECHO, "--deflate", "context"), deflate: true)
    noise = Random.new(1).bytes(3000).unpack1("H*")
    sizes = Array.new(3) do
      before = client.deflate.compressed_bytes
      assert_equal [:text, noise], client.send_text(noise).receive
      client.deflate.compressed_bytes - before
    end

    refute_includes client.deflate.parameters, "server_no_context_takeover"
    assert_operator sizes.last, :<, sizes.first / 4
  end

  def test_the_context_is_not_kept_otherwise
    client = web_socket(pushing(ECHO), deflate: true)

    assert_includes client.deflate.parameters, "server_no_context_takeover"
  end

  # Offers => true if the server accepts one of them, nil if it may or may not.
  OFFERS = {
    "permessage-deflate" => true,
    "permessage-deflate; client_max_window_bits" => true,
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover" => true,
    "permessage-deflate; server_max_window_bits=10; client_max_window_bits=10" => nil,
    "permessage-deflate; unknown=1, permessage-deflate" => true,
    "x-webkit-deflate-frame, permessage-deflate; client_max_window_bits" => true,
    "permessage-deflate; unknown" => false,
    "permessage-deflate; server_max_window_bits=7" => false,
    "permessage-deflate; client_no_context_takeover; client_no_context_takeover" => false,
    "x-other" => false
  }.freeze

  def test_what_is_offered_is_answered_within_its_bounds
    server = pushing(ECHO)
    OFFERS.each do |offer, accepted|
      client = web_socket(server, deflate: offer)

      assert_equal accepted, !client.deflate.nil?, offer unless accepted.nil?
      assert_equal [:text, TEXT], client.send_text(TEXT).receive, offer
      assert_equal [:text, TEXT], client.send_text(TEXT).receive, offer
    end
  end

  def test_a_compressed_message_may_come_in_fragments
    client = web_socket(pushing(ECHO), deflate: true)
    bytes = client.deflate.compress(TEXT)
    client.send_frame(:text, bytes.byteslice(0, 10), fin: false, rsv: 4).ping("between")
    client.send_frame(:continuation, bytes.byteslice(10, 20), fin: false).send_frame(:continuation, bytes.byteslice(30..))

    assert_equal [:text, TEXT], client.receive
    assert_equal ["between"], client.pongs
  end

  def test_compressed_bytes_that_are_none_end_the_connection
    server = pushing(ECHO)
    client = web_socket(server, deflate: true)
    client.send_frame(:text, "\xff\xff\xff\xff", rsv: 4)

    assert_includes [1002, 1007], client.receive_close.first
    assert client.ended?
    assert_served(server)
  end

  def test_compressed_text_has_to_be_utf8_too
    client = web_socket(pushing(ECHO), deflate: true)
    client.send_text("\xff" * 2000)

    assert_equal 1007, client.receive_close.first
  end

  def test_a_published_message_is_compressed_for_those_who_take_it_so
    server = pushing("def on_open(client) = client.subscribe('all')\n#{ECHO}")
    clients = [true, false, "permessage-deflate; server_no_context_takeover"].map { |deflate| web_socket(server, deflate: deflate) }
    clients.each { |client| client.send_text("ready").receive }
    requested(server, "Fairlead.publish('all', #{TEXT.inspect})")

    assert_equal [[:text, TEXT]] * 3, clients.map(&:receive)
    assert_equal [1, 1], clients.filter_map { |client| client.deflate&.decompressed }
  end
end
