# frozen_string_literal: true

require "test_helper"
require "support/moving_cable"

# Clients that the new code does not accept any more are told so, as Rails does.
class MovingRejectionsTest < Minitest::Test
  include Fairlead::Test::MovingCable

  parallelize_me!

  REJECTED = { channel: "FickleChannel", how: "reject" }.freeze

  def test_a_subscription_that_the_new_code_rejects
    server = moving_cable
    client = in_room(server)
    [REJECTED, { channel: "OldChannel" }].each { |channel| enter(client, channel) }
    renew(server)

    rejections = [REJECTED, { channel: "OldChannel" }].map { |channel| { "identifier" => JSON.generate(channel), "type" => "reject_subscription" } }
    assert_equal rejections, Array.new(2) { heard(client) }
    speak(server, "x")
    assert_equal({ "identifier" => JSON.generate(ROOM), "message" => "x" }, heard(client))
    assert_equal answer("y"), asked(client, "y")
    assert_quiet(client)
  end

  # The way in which the new code ends a connection => reason and reconnect of `disconnect`.
  ENDS = {
    "&how=reject" => ["unauthorized", false], "&status=401" => ["unauthorized", false], "&status=302" => ["unauthorized", false],
    "&status=404" => ["invalid_request", true], "&status=503" => ["server_restart", true], "&status=200" => ["server_restart", true]
  }.freeze

  def test_a_connection_that_the_new_code_refuses
    server = moving_cable
    clients = ENDS.keys.map { |query| in_room(server, query: query) }
    renew(server)

    ENDS.values.zip(clients) do |(reason, reconnect), client|
      assert_equal({ "type" => "disconnect", "reason" => reason, "reconnect" => reconnect }, heard(client))
      assert_equal 1000, ended(client)
    end
    assert_empty server.stderr
  end

  def test_an_origin_that_the_new_code_refuses
    server = moving_cable(code: 'ActionCable.server.config.allowed_request_origins = ["http://other.example"] unless VERSION == "1"')
    client = in_room(server)
    renew(server)

    assert_equal({ "type" => "disconnect", "reason" => "invalid_request", "reconnect" => true }, heard(client))
    assert_equal 1000, ended(client)
  end

  # Rails logs the exception of a channel, and the client connects again.
  def test_a_channel_that_raises
    server = moving_cable
    client = in_room(server, to: { channel: "FickleChannel", how: "raise" })
    renew(server)

    assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, heard(client))
    assert_equal 1000, ended(client)
    assert_match(/broken/, log(server))
  end

  def test_a_connection_that_raises_and_a_thread_that_ends
    server = moving_cable
    raising = in_room(server, query: "&how=raise")
    killing = in_room(server, to: { channel: "FickleChannel", how: "kill" })
    renew(server)

    assert_equal 1011, ended(raising)
    assert_equal 1012, ended(killing)
    assert_match(/no database/, log(server))
    assert_equal "page", get(server).body
  end

  def test_a_sub_protocol_that_the_new_code_does_not_know
    server = moving_cable(code: 'Fairlead::Cable::Socket.add_protocol("old", Fairlead::Cable::Socket) if VERSION == "1"')
    client = in_room(server, protocols: ["old"])
    renew(server)

    assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, heard(client))
  end
end
