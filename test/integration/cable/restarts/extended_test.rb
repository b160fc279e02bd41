# frozen_string_literal: true

require "test_helper"
require "support/moving_cable"

# Clients with AnyCable's sub-protocol keep their session when they move: its id, positions and presence.
class MovingExtendedTest < Minitest::Test
  include Fairlead::Test::MovingCable

  parallelize_me!

  PRESENT = { channel: "PresentChannel" }.freeze
  JOINING = { channel: "PresentChannel", join: 1 }.freeze

  def test_positions_history_and_restored_sessions
    server = moving_cable
    broadcast(server, 0)
    client, welcome = welcomed(server)
    subscribe(client, PLAIN)
    broadcast(server, 1)
    first = heard(client)
    former, its_welcome = welcomed(server)
    subscribe(former, PLAIN)
    former.drop(reset: true)
    wait_for_log(server, /Finished/)
    broadcast(server, 2)
    restored, its_welcome = welcomed(server, sid: its_welcome["sid"])
    assert its_welcome["restored"]
    renew(server) # the restored client has not asked for its history: its stream starts before it moves
    broadcast(server, 3)
    third = Array.new(2) { heard(client) }.last

    assert_equal 3, third["message"]
    assert_equal first["epoch"], third["epoch"]
    assert_operator first["offset"], :<, third["offset"]
    # The message before the subscription, and nothing twice.
    command(client, "history", PLAIN, history: { since: Time.now.to_i - 60 })
    assert_equal [0], heard_messages(client, 1)
    assert_equal "confirm_history", heard(client)["type"]
    assert_quiet(client)
    assert_equal [2, 3], heard_messages(restored, 2)
    command(restored, "subscribe", PLAIN) # had it not received the welcome
    assert_equal({ "identifier" => JSON.generate(PLAIN), "type" => "confirm_subscription" }, heard(restored))
    client.drop(reset: true)
    assert_equal [JSON.generate(PLAIN)], welcomed(server, sid: welcome["sid"]).last["restored_ids"]
  end

  # The new code rejects one of them.
  def test_members_stay_present
    code = 'class PresentChannel; prepend(Module.new { def subscribed = VERSION == "2" && params[:last] ? reject : super }); end'
    server = moving_cable(code: code)
    watcher = joined(server, "ann", to: PRESENT)
    bob, dan = [["bob", JOINING], ["dan", JOINING.merge(last: 1)]].map { |name, channel| member(server, name, channel) }
    eve = joined(server, "eve", to: PRESENT)
    command(eve, "join", PRESENT, presence: { id: "e", info: { "name" => "Eve" } })
    wait_until("all members") { members(watcher).size == 3 }
    changes = []
    renew(server)
    wait_until("the rejection") { heard(dan)["type"] == "reject_subscription" }

    staying = [{ "id" => "bob", "info" => { "name" => "bob" } }, { "id" => "e", "info" => { "name" => "Eve" } }]
    wait_until("the same members") { members(watcher, changes) == staying }
    # The watcher moves, too: it may get the list only.
    assert_empty changes.map { |change| change.values_at("type", "id") } - [%w[leave dan]]
    command(eve, "leave", PRESENT)
    command(bob, "unsubscribe", JOINING)
    assert_equal [%w[leave bob], %w[leave e]], Array.new(2) { told(watcher).values_at("type", "id") }.sort
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

  def member(server, name, channel)
    client, = welcomed(server, name)
    command(client, "subscribe", channel)
    wait_until("the confirmation") { heard(client)["type"] == "confirm_subscription" }
    client
  end
end
