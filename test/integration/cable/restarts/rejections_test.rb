# frozen_string_literal: true

require "test_helper"
require "support/moving_cable"

# Clients that the new code does not accept any more are told so, as Rails does.
class MovingRejectionsTest < Minitest::Test
  include Fairlead::Test::MovingCable

  parallelize_me!

  FOLLOW = { channel: "FollowChannel" }.freeze
  REJECTED = { channel: "FickleChannel", how: "reject" }.freeze

  # The way in which the new code ends a connection => reason and reconnect of `disconnect`.
  ENDS = {
    { query: "&how=reject" } => ["unauthorized", false], { query: "&user=ann" } => ["unauthorized", false],
    { query: "&status=401" } => ["unauthorized", false], { query: "&status=302" } => ["unauthorized", false],
    { query: "&status=404" } => ["invalid_request", true], { query: "&status=503" } => ["server_restart", true],
    { query: "&status=200" } => ["server_restart", true], { to: { channel: "FickleChannel", how: "raise" } } => ["server_restart", true],
    { protocols: ["old"] } => ["server_restart", true]
  }.freeze
  CODE = <<~'RUBY'
    Fairlead::Cable::Socket.add_protocol("old", Fairlead::Cable::Socket) if VERSION == "1"
    Connection.rescue_from(RuntimeError) { |error| logger.error("rescued from #{error.message}") }
  RUBY

  def test_subscriptions_and_connections_that_the_new_code_refuses
    server = moving_cable(code: CODE)
    client = in_room(server, query: "&finish=raise")
    [REJECTED, { channel: "OldChannel" }].each { |channel| enter(client, channel) }
    ending = ENDS.keys.map { |how| in_room(server, **how) }
    raising = in_room(server, query: "&how=raise")
    killing = in_room(server, to: { channel: "FickleChannel", how: "kill" })
    changed, former = changed_by_actions(server)
    renew(server)

    rejections = [REJECTED, { channel: "OldChannel" }].map { |channel| { "identifier" => JSON.generate(channel), "type" => "reject_subscription" } }
    assert_equal rejections, Array.new(2) { heard(client) }
    ENDS.values.zip(ending) do |(reason, reconnect), one|
      assert_equal({ "type" => "disconnect", "reason" => reason, "reconnect" => reconnect }, heard(one))
      assert_equal 1000, ended(one)
    end
    assert_equal [1011, 1012], [raising, killing].map { |one| ended(one) }
    speak(server, "x")
    assert_equal({ "identifier" => JSON.generate(ROOM), "message" => "x" }, heard(client))
    assert_equal ["x", [1012] * 3], [told(former), changed.map { |one| ended(one) }]
    assert_equal answer("y"), asked(client, "y")
    assert_quiet(client)
    assert_match(/broken.*no database|no database.*broken/m, log(server))
    assert_match(/rescued from broken/, log(server))
    assert_equal 1, server.stderr.scan(/error in the application: .*: finished \(RuntimeError\)/).size
  end

  def test_an_origin_that_the_new_code_refuses
    server = moving_cable(code: 'ActionCable.server.config.allowed_request_origins = ["http://other.example"] unless VERSION == "1"')
    client = in_room(server)
    renew(server)

    assert_equal({ "type" => "disconnect", "reason" => "invalid_request", "reconnect" => true }, heard(client))
    assert_equal 1000, ended(client)
  end

  private

  # Clients with other streams than `subscribed` makes, or with state of their actions; and one that has come back to its former streams.
  def changed_by_actions(server)
    following, former, left = Array.new(3) { in_room(server, to: FOLLOW) }
    stateful = in_room(server, to: { **FOLLOW, state: 1 })
    [following, former].each { |client| act(client, "follow", to: FOLLOW, name: "other") }
    [[former, "other"], [left, "room"]].each { |client, name| act(client, "unfollow", to: FOLLOW, name: name) }
    [following, former, left].each { |client| enter(client, { channel: "OtherChannel" }) }
    [[following, left, stateful], former]
  end
end
