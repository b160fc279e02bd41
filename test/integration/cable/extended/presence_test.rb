# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# Whispers, and who is present, for clients of several workers.
class ExtendedPresenceTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  TYPING = { channel: "TypingChannel" }.freeze
  PRESENT = { channel: "PresentChannel" }.freeze
  JOINING = { channel: "PresentChannel", join: 1 }.freeze

  CODE = <<~'RUBY'
    class TypingChannel
      def stop = stop_stream_from("typing")
      def answer(data) = transmit({ answer: data["text"] })
    end

    Fairlead::Cable::Presence::Members.prepend(Module.new { def full? = super || File.exist?("full") })
  RUBY

  def test_whispers_reach_all_other_clients
    server = extended_cable
    clients = Array.new(4) { |number| joined(server, "client#{number}", to: TYPING) }
    command(clients.first, "whisper", TYPING, data: { "event" => "typing", "user" => "grüße" })

    expected = { "identifier" => JSON.generate(TYPING), "message" => { "event" => "typing", "user" => "grüße" } }
    assert_equal [expected] * 3, clients.drop(1).map { |client| heard(client) }
    command(clients.last, "whisper", TYPING, data: 1)
    assert_equal 1, told(clients.first)
  end

  def test_a_channel_without_whispers_refuses_them
    server = extended_cable
    clients = Array.new(2) { joined(server) }
    command(clients.first, "whisper", data: "x")

    wait_for_log(server, /clients of RoomChannel may not whisper/)
    clients.each { |client| assert_nothing_heard(client) }
  end

  def test_whispers_end_with_their_stream
    server = extended_cable(code: CODE)
    clients = Array.new(2) { joined(server, to: TYPING) }
    act(clients.first, "stop", to: TYPING)
    command(clients.first, "whisper", TYPING, data: "x")

    wait_for_log(server, /clients of TypingChannel may not whisper/)
    assert_nothing_heard(clients.last, to: TYPING)
  end

  # Rails' own streams have no history.
  def test_other_adapters_have_whispers_and_presence
    server = extended_cable(adapter: "async", code: CODE)
    clients = Array.new(3) { joined(server, to: TYPING) }
    command(clients.first, "whisper", TYPING, data: "x")
    assert_equal %w[x x], clients.drop(1).map { |client| told(client) }
    act(clients.last, "stop", to: TYPING)
    assert_nothing_heard(clients.last, to: TYPING)
    command(clients.first, "whisper", TYPING, data: "y")
    assert_equal "y", told(clients[1])
    assert_nothing_heard(clients.last, to: TYPING)
    watcher = joined(server, to: PRESENT)
    settle(watcher)
    bob = member(server, "bob")
    assert_equal change("join", "bob", info: { "name" => "bob" }), heard(watcher)
    command(bob, "unsubscribe", JOINING)
    assert_equal change("leave", "bob"), heard(watcher)
  end

  def test_members_join_and_leave
    server = extended_cable
    watcher = joined(server, "ann", to: PRESENT)
    settle(watcher)
    bob = member(server, "bob")
    assert_equal change("join", "bob", info: { "name" => "bob" }), heard(watcher)
    eve = joined(server, "eve", to: PRESENT)
    command(eve, "join", PRESENT, presence: { id: 5, info: nil })
    assert_equal change("join", "5"), heard(watcher)
    assert_equal [{ "id" => "5" }, { "id" => "bob", "info" => { "name" => "bob" } }], settle(watcher).sort_by { |member| member["id"] }

    command(eve, "leave", PRESENT)
    assert_equal change("leave", "5"), heard(watcher)
    command(bob, "unsubscribe", JOINING)
    assert_equal change("leave", "bob"), heard(watcher)
    assert_empty settle(watcher)
  end

  def test_a_rejected_subscription_is_no_member
    server = extended_cable
    watcher = joined(server, "ann", to: PRESENT)
    settle(watcher)
    mallory, = welcomed(server, "mallory")
    rejected = { channel: "PresentChannel", join: 1, reject: 1 }
    command(mallory, "subscribe", rejected)
    assert_equal({ "identifier" => JSON.generate(rejected), "type" => "reject_subscription" }, heard(mallory))

    assert_empty settle(watcher)
  end

  def test_a_client_joins_by_itself_only_where_the_channel_permits_it
    server = extended_cable
    client = joined(server, "eve", to: { channel: "PresentChannel", join: 1, alone: 1 })
    command(client, "join", { channel: "PresentChannel", join: 1, alone: 1 }, presence: { id: "bob", info: "evil" })

    wait_for_log(server, /clients of PresentChannel may not join or leave/)
  end

  def test_a_member_is_present_while_one_of_its_clients_is
    server = extended_cable
    watcher = joined(server, to: PRESENT)
    settle(watcher)
    clients = Array.new(2) { member(server, "bob") }
    assert_equal change("join", "bob", info: { "name" => "bob" }), heard(watcher)
    wait_until("both clients") { settle(watcher).size == 1 }
    clients.each { |client| command(client, "unsubscribe", JOINING) }

    assert_equal change("leave", "bob"), heard(watcher)
    assert_empty settle(watcher)
  end

  def test_a_client_is_present_while_one_of_its_subscriptions_is
    server = extended_cable
    watcher = joined(server, to: PRESENT)
    settle(watcher)
    both = Array.new(2) { |number| { channel: "PresentChannel", join: 1, number: number } }
    bob, = welcomed(server, "bob")
    both.each { |channel| subscribe_among_members(bob, channel) }
    command(bob, "unsubscribe", both.first)
    assert_equal change("join", "bob", info: { "name" => "bob" }), heard(watcher)
    assert_equal ["bob"], settle(watcher).map { |member| member["id"] }
    command(bob, "unsubscribe", both.last)
    assert_equal change("leave", "bob"), heard(watcher)
  end

  def test_a_refused_member_is_subscribed_all_the_same
    server = extended_cable("-w", 0, code: CODE)
    client, = welcomed(server)
    101.times { |number| subscribe_among_members(client, { channel: "PresentChannel", join: 1, number: number }) }
    File.write(server.path("full"), "")
    2.times { member(server, "late") }

    assert_equal ["ann"], settle(joined(server, to: PRESENT)).map { |member| member["id"] }
    assert_equal 2, log(server).scan("cannot join the members of present").size
  end

  def test_a_restored_client_joins_with_its_subscription
    server = extended_cable
    watcher = joined(server, to: PRESENT)
    settle(watcher)
    former, welcome = welcomed(server, "bob")
    subscribe(former, PRESENT)
    former.drop(reset: true)
    client, = welcomed(server, "bob", sid: welcome["sid"])
    command(client, "subscribe", PRESENT, presence: { id: "b" })

    assert_equal change("join", "b"), heard(watcher)
  end

  def test_actions_join_and_leave
    server = extended_cable
    watcher = joined(server, to: PRESENT)
    settle(watcher)
    client = joined(server, "bob", to: PRESENT)
    act(client, "follow", to: PRESENT, id: "b", name: "Bob")
    assert_equal change("join", "b", info: { "name" => "Bob" }), heard(watcher)
    act(client, "unfollow", to: PRESENT)
    assert_equal change("leave", "b"), heard(watcher)
  end

  def test_invalid_presences_are_errors_in_the_log
    server = extended_cable
    client = joined(server, to: PRESENT)
    [nil, {}, { id: "" }, { id: "x" * 300 }, { id: {} }, { id: "x", info: "x" * 5000 }, "x"].each do |presence|
      command(client, "join", PRESENT, presence: presence)
    end
    command(client, "presence", TYPING)
    command(client, "join", PRESENT, presence: { id: "right" })

    wait_until("the right one") { settle(client) == [{ "id" => "right" }] }
    assert_equal 8, log(server).scan("Could not execute command").size
  end

  private

  def change(type, id, **info) = { "type" => "presence", "message" => { "type" => type, "id" => id, **info.transform_keys(&:to_s) } }

  # Asks for the members until all processes know each other.
  def settle(client)
    command(client, "presence", PRESENT)
    loop do
      message = heard(client)
      return message["message"]["records"] if message.dig("message", "type") == "info"
    end
  end

  def member(server, name)
    client, = welcomed(server, name)
    subscribe_among_members(client, JOINING)
    client
  end

  # Members come and go meanwhile.
  def subscribe_among_members(client, to)
    command(client, "subscribe", to)
    wait_until("the confirmation") { heard(client)["type"] == "confirm_subscription" }
  end

  # Leaves out the identifier of the client's own subscription.
  def heard(client) = super.tap { |message| message.delete("identifier") if message["type"] == "presence" }
end
