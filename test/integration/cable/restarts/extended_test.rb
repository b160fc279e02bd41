# frozen_string_literal: true

require "test_helper"
require "support/moving_cable"

# Clients with AnyCable's sub-protocol keep their session when they move: its id, positions and presence.
class MovingExtendedTest < Minitest::Test
  include Fairlead::Test::MovingCable

  parallelize_me!

  PRESENT = { channel: "PresentChannel" }.freeze
  JOINING = { channel: "PresentChannel", join: 1 }.freeze

  def test_positions_and_history_go_on
    server = moving_cable
    broadcast(server, 0)
    client = joined(server, to: PLAIN)
    broadcast(server, 1)
    first = heard(client)
    renew(server)
    broadcast(server, 2)
    second = heard(client)

    assert_equal [1, 2], [first, second].map { |message| message["message"] }
    assert_equal first["epoch"], second["epoch"]
    assert_operator first["offset"], :<, second["offset"]
    # The message before the subscription, and nothing twice.
    command(client, "history", PLAIN, history: { since: Time.now.to_i - 60 })
    assert_equal [0], heard_messages(client, 1)
    assert_equal "confirm_history", heard(client)["type"]
    assert_quiet(client)
  end

  # A stream on hold starts before the client moves.
  def test_a_restored_session_that_moves_before_its_history
    server = moving_cable
    former, welcome = welcomed(server)
    subscribe(former, PLAIN)
    former.drop(reset: true)
    broadcast(server, "meanwhile")
    client, restored = welcomed(server, sid: welcome["sid"])
    assert restored["restored"]
    renew(server)

    assert_equal ["meanwhile"], heard_messages(client, 1)
    broadcast(server, "after")
    assert_equal ["after"], heard_messages(client, 1)
    command(client, "subscribe", PLAIN) # had it not received the welcome
    assert_equal({ "identifier" => JSON.generate(PLAIN), "type" => "confirm_subscription" }, heard(client))
  end

  def test_a_session_is_restored_after_its_client_has_moved
    server = moving_cable
    former, welcome = welcomed(server)
    subscribe(former, PLAIN)
    renew(server)
    assert_equal answer("x"), asked(former, "x", to: PLAIN)
    former.drop(reset: true)
    _, restored = welcomed(server, sid: welcome["sid"])

    assert_equal [JSON.generate(PLAIN)], restored["restored_ids"]
  end

  def test_members_stay_present
    server = moving_cable
    watcher = joined(server, "ann", to: PRESENT)
    bob, = welcomed(server, "bob")
    subscribe_as_member(bob, JOINING)
    eve = joined(server, "eve", to: PRESENT)
    command(eve, "join", PRESENT, presence: { id: "e", info: { "name" => "Eve" } })
    members = [{ "id" => "bob", "info" => { "name" => "bob" } }, { "id" => "e", "info" => { "name" => "Eve" } }]
    wait_until("both members") { members(watcher) == members }
    changes = []
    renew(server)

    wait_until("the same members") { members(watcher, changes) == members }
    assert_empty changes
    command(eve, "leave", PRESENT)
    command(bob, "unsubscribe", JOINING)
    assert_equal [%w[leave bob], %w[leave e]], Array.new(2) { told(watcher).values_at("type", "id") }.sort
  end

  # It is gone only when the new code has said so.
  def test_a_member_whose_subscription_is_rejected_leaves
    code = 'class PresentChannel; prepend(Module.new { def subscribed = VERSION == "2" && params[:join] ? reject : super }); end'
    server = moving_cable(code: code)
    watcher = joined(server, "ann", to: PRESENT)
    bob, = welcomed(server, "bob")
    subscribe_as_member(bob, JOINING)
    wait_until("the member") { members(watcher).size == 1 }
    renew(server)
    wait_until("the rejection") { heard(bob)["type"] == "reject_subscription" }

    wait_until("the leave") { members(watcher).empty? }
  end

  private

  # The members of a stream; presence messages in front of them go to +changes+.
  def members(client, changes = [])
    command(client, "presence", PRESENT)
    loop do
      message = told(client)
      return message["records"].sort_by { |member| member["id"] } if message["type"] == "info"

      changes << message
    end
  end

  def subscribe_as_member(client, channel)
    command(client, "subscribe", channel)
    wait_until("the confirmation") { heard(client)["type"] == "confirm_subscription" }
  end
end
