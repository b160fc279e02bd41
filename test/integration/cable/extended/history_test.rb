# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# History for clients with AnyCable's sub-protocol: by time and by position, with a subscription and afterwards.
class ExtendedHistoryTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  CONFIRMED = { "identifier" => JSON.generate(ROOM), "type" => "confirm_history" }.freeze
  REJECTED = { "identifier" => JSON.generate(ROOM), "type" => "reject_history" }.freeze

  def test_messages_say_where_they_are_in_their_stream
    server = extended_cable
    client = joined(server)
    2.times { |number| broadcast(server, number) }
    first, second = Array.new(2) { heard(client) }

    assert_equal %w[identifier message stream_id epoch offset], first.keys
    assert_equal [0, "room"], first.values_at("message", "stream_id")
    assert_equal [first["epoch"], first["offset"] + 1], second.values_at("epoch", "offset")
  end

  def test_history_by_time_follows_the_confirmation
    server = extended_cable
    2.times { |number| broadcast(server, number) }
    client, = welcomed(server)
    command(client, "subscribe", history: { since: Time.now.to_i - 30 })

    assert_equal "confirm_subscription", heard(client)["type"]
    assert_equal [0, 1], heard_messages(client, 2)
    assert_equal CONFIRMED, heard(client)
    broadcast(server, 2)
    assert_equal [2], heard_messages(client, 1)
  end

  def test_history_after_the_subscription
    server = extended_cable
    2.times { |number| broadcast(server, number) }
    client = joined(server)
    command(client, "history", history: { since: Time.now.to_i - 30 })

    assert_equal [0, 1], heard_messages(client, 2)
    assert_equal CONFIRMED, heard(client)
  end

  def test_history_by_position
    server = extended_cable
    client = joined(server)
    3.times { |number| broadcast(server, number) }
    messages = Array.new(3) { heard(client) }
    late, = welcomed(server)
    command(late, "subscribe", history: { streams: position(messages.first) })

    assert_equal "confirm_subscription", heard(late)["type"]
    assert_equal messages.drop(1), Array.new(2) { heard(late) }
    assert_equal CONFIRMED, heard(late)
  end

  def test_messages_that_the_client_has_received_are_not_repeated
    server = extended_cable
    broadcast(server, "before")
    client = joined(server)
    broadcast(server, "live")
    assert_equal ["live"], heard_messages(client, 1)
    command(client, "history", history: { since: Time.now.to_i - 30 })

    assert_equal ["before"], heard_messages(client, 1)
    assert_equal CONFIRMED, heard(client)
  end

  def test_a_position_that_means_nothing_here_is_rejected_and_the_subscription_stays
    server = extended_cable
    known = joined(server)
    broadcast(server, "before")
    offset = heard(known)["offset"]
    [{ epoch: "abc", offset: offset }, { epoch: 7, offset: -1 }, { epoch: "x.y", offset: 1 }, { epoch: "1", offset: 1 << 70 }, 5, []].each do |wanted|
      client, = welcomed(server)
      command(client, "subscribe", history: { streams: { room: wanted } })

      assert_equal %w[confirm_subscription reject_history], Array.new(2) { heard(client)["type"] }, wanted.inspect
      broadcast(server, "now")
      assert_equal ["now"], heard_messages(client, 1)
    end
  end

  def test_an_evicted_position_is_rejected
    server = extended_cable("--history-messages", 2)
    client = joined(server)
    4.times { |number| broadcast(server, number) }
    first = Array.new(4) { heard(client) }.first
    late = joined(server)
    command(late, "history", history: { streams: position(first) })

    assert_equal REJECTED, heard(late)
    assert_nothing_heard(late)
  end

  def test_messages_since_a_time_are_as_many_as_are_kept
    server = extended_cable("-w", 1, "--history-messages", 2)
    4.times { |number| broadcast(server, number) }
    client, = welcomed(server)
    command(client, "subscribe", history: { since: 1 })
    assert_equal "confirm_subscription", heard(client)["type"]
    assert_equal [2, 3], heard_messages(client, 2)
    assert_equal REJECTED, heard(client)

    evaluate(server, "Fairlead::PubSub.default = Class.new(Fairlead::PubSub::Engine).new") # a broker
    assert_history_is_rejected(server)
    assert_history_is_rejected(extended_cable("--history-bytes", 0))
  end

  # With +subscribe+, and afterwards. A position that the client has itself is newer than the one of its page.
  def test_messages_since_the_page_was_made_come_once
    server = extended_cable
    before = joined(server)
    broadcast(server, 0)
    page = { channel: "RoomChannel", since: evaluate(server, 'Fairlead::Cable.position("room")').delete('"') }
    2.times { |number| broadcast(server, number + 1) }
    positions = Array.new(3) { position(heard(before)) }
    client, = welcomed(server)
    command(client, "subscribe", page)
    assert_equal [1, 2, "confirm_subscription"], heard_in_short(client, 3)
    command(client, "history", page, history: { streams: positions[0] })
    assert_equal ["confirm_history"], heard_in_short(client, 1)

    { { streams: { "other" => {} } } => [1, 2], { since: Time.now.to_i + 60 } => [1, 2], { since: 1 } => [0, 1, 2],
      { streams: positions[1] } => [2] }.each do |request, messages|
      client, = welcomed(server)
      command(client, "subscribe", page, history: request)
      assert_equal ["confirm_subscription", *messages, "confirm_history"], heard_in_short(client, messages.size + 2), request.inspect
    end
  end

  # Without a copy of them in Ruby.
  def test_a_long_history_goes_to_a_client_that_reads
    server = extended_cable("--client-pending-bytes", 65_536, code: <<~RUBY)
      Fairlead::PubSub.singleton_class.prepend(Module.new do
        def history(channel, **) = channel == "room" ? raise("copies the history") : super
      end)
    RUBY
    evaluate(server, "20.times { ActionCable.server.broadcast('room', 'x' * 50_000) }")
    client = joined(server)
    command(client, "history", history: { since: 1 })

    assert_equal [50_000] * 20, heard_messages(client, 20).map(&:size)
    assert_equal CONFIRMED, heard(client)
    command(client, "history", history: { since: 1 })
    assert_equal CONFIRMED, heard(client)
  end

  # Rails' handlers have no history; the other subscriptions do.
  def test_streams_with_a_block_are_delivered_without_positions
    server = extended_cable
    client, = welcomed(server)
    handler = { channel: "HandlerChannel" }
    command(client, "subscribe", handler, history: { since: 1 })
    assert_equal %w[confirm_subscription confirm_history], Array.new(2) { heard(client)["type"] }
    broadcast(server, "x")

    assert_equal({ "identifier" => JSON.generate(handler), "message" => { "handled" => "\"x\"" } }, heard(client))
  end

  def test_history_of_an_unknown_subscription_is_an_error_in_the_log
    server = extended_cable
    client = joined(server)
    command(client, "history", { channel: "OtherChannel" }, history: { since: 1 })

    wait_for_log(server, /Unable to find subscription with identifier: \{"channel":"OtherChannel"\}/)
    assert_nothing_heard(client)
  end

  private

  def assert_history_is_rejected(server)
    client, = welcomed(server)
    command(client, "subscribe", history: { since: 1 })
    assert_equal %w[confirm_subscription reject_history], heard_in_short(client, 2)
  end

  def heard_in_short(client, count) = Array.new(count) { heard(client).then { |message| message["message"] || message["type"] } }
end
