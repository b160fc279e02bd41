# frozen_string_literal: true

require "test_helper"
require "support/action_cable"

# Clients of Action Cable that send too much, or nonsense: they get the replies of Rails, and other clients notice nothing.
class CableLimitsTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  parallelize_me!

  # A channel without a stream, one with two, and one that makes more later.
  CHANNELS = <<~'RUBY'
    class SilentChannel < ActionCable::Channel::Base
      def answer(data) = transmit({ answer: data["text"] })
    end

    class PairChannel < ActionCable::Channel::Base
      def subscribed = %w[a b].each { |letter| stream_from("#{params[:number]}#{letter}") }
      def more(data) = Array.new(data["count"]) { |number| stream_from("more#{number}") }
    end
  RUBY

  def test_more_subscriptions_than_permitted_are_rejected
    server = cable("--max-subscriptions", 100, code: CHANNELS)
    client, other = %w[ann bob].map { |name| connected(server, name) }
    answers = asked(client, 10_000) { |number| { channel: "SilentChannel", number: number } }

    assert_equal ({ "confirm_subscription" => 100, "reject_subscription" => 9900 }), answers
    assert_equal "9900", statistic(server, :refused_subscriptions)
    assert_one_line server
    subscribe(other, { channel: "SilentChannel" })
    act(client, "answer", to: { channel: "SilentChannel", number: 7 }, text: "still here")
    assert_equal({ "answer" => "still here" }, told(client))
  end

  def test_more_streams_than_permitted_are_rejected
    server = cable("--max-subscriptions", 100, code: CHANNELS)
    client = connected(server)
    answers = asked(client, 200) { |number| { channel: "PairChannel", number: number } }

    assert_includes 49..50, answers["confirm_subscription"]
    assert_equal 200, answers.values.sum
    assert_one_line server
    command(client, "unsubscribe", { channel: "PairChannel", number: 0 })
    subscribe(client, { channel: "PairChannel", number: 1000 })
    evaluate(server, "ActionCable.server.broadcast('1000b', 1)")
    assert_equal 1, told(client)
  end

  def test_a_subscription_with_too_many_streams_ends
    server = cable("--max-subscriptions", 100, code: CHANNELS)
    client = joined(server, to: pair = { channel: "PairChannel", number: 1 })
    act(client, "more", to: pair, count: 200)

    assert_equal({ "identifier" => JSON.generate(pair), "type" => "reject_subscription" }, heard(client))
    assert_equal "[]", evaluate(server, "ActionCable.server.connections.first.subscriptions.identifiers")
    subscribe(client, pair)
  end

  def test_the_same_subscription_again_is_no_further_one
    server = cable("--max-subscriptions", 2, code: CHANNELS)
    client = connected(server)
    subscribe(client, { channel: "SilentChannel" })
    3.times { command(client, "subscribe", { channel: "SilentChannel" }) }
    act(client, "answer", to: { channel: "SilentChannel" }, text: "x")

    assert_equal({ "answer" => "x" }, told(client))
  end

  def test_a_million_bytes_of_data
    server = cable
    client = joined(server)
    text = "x" * 1_000_000
    act(client, "answer", text: text)

    assert_equal text, told(client)["answer"]
    act(client, "answer", text: text * 2)
    assert_equal 1009, client.receive_close(skip: true).first
    wait_until("its end") { evaluate(server, "ActionCable.server.connections.size") == "0" }
  end

  # Rails logs them.
  NONSENSE = [
    "", "{", "null", "1", "[]", '"subscribe"', "{}", '{"command":1}', '{"command":"subscribe"}', '{"command":"subscribe","identifier":1}',
    '{"command":"subscribe","identifier":"x"}', '{"command":"subscribe","identifier":"null"}', '{"command":"subscribe","identifier":"{}"}',
    '{"command":"subscribe","identifier":"{\"channel\":\"Kernel\"}"}', '{"command":"subscribe","identifier":"{\"channel\":[1]}"}',
    '{"command":"unsubscribe","identifier":"x"}', '{"command":"message","identifier":"x","data":"{}"}', "[" * 200, "{\"command\":\"#{"x" * 10_000}\"}"
  ].freeze

  def test_nonsense_is_logged_and_harms_nobody
    server = cable
    client, other = %w[ann bob].map { |name| joined(server, name) }
    NONSENSE.each { |text| client.send_text(text) }
    command(client, "message", data: "{")
    command(client, "message", data: "[]")
    act(client, "answer", text: "still here")

    assert_equal({ "answer" => "still here" }, told(client))
    act(other, "answer", text: "me, too")
    assert_equal({ "answer" => "me, too" }, told(other))
    assert_empty server.stderr
  end

  def test_a_client_that_does_not_read_is_closed
    server = cable("--client-pending-bytes", "64k")
    slow, other = %w[ann bob].map { |name| joined(server, name) }
    text = "x" * 100_000
    wait_until("the end of the slow client") do
      evaluate(server, "ActionCable.server.broadcast('room', 'x' * 100_000)")
      assert_equal text, told(other)
      statistic(server, :overflowed) == "1"
    end
    slow.wait_for("the close") { slow.over? }

    assert_equal 1013, slow.closing.first
    slow.drop
    wait_until("its end") { evaluate(server, "ActionCable.server.connections.map(&:name)") == '["bob"]' }
  end

  private

  # Sends that many subscriptions. Returns type => number of answers.
  def asked(client, count)
    sender = Thread.new { count.times { |number| command(client, "subscribe", yield(number)) } }
    Array.new(count) { heard(client)["type"] }.tally
  ensure
    sender.join
  end

  def statistic(server, name) = evaluate(server, "Fairlead.stats[:engines].sum { |engine| engine[:#{name}] }")

  def assert_one_line(server)
    server.wait_for_output(/refused a subscription of .*: max_subscriptions is reached/)
    assert_equal 1, server.stderr.scan(/max_subscriptions/).size
  end
end
