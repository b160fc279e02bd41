# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# Sessions that another connection restores.
class ExtendedRestorationTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  def test_a_session_is_restored_by_its_id
    server = extended_cable
    2.times do |number|
      former, welcome = welcomed(server)
      subscribe(former)
      broadcast(server, "before")
      last = heard(former)
      former.drop(reset: true)
      broadcast(server, "meanwhile")
      how = number.zero? ? { sid: welcome["sid"] } : { headers: { "x-anycable-restore-sid" => welcome["sid"] } }
      client, restored = welcomed(server, **how)
      assert_equal({ "type" => "welcome", "sid" => restored["sid"], "restored" => true, "restored_ids" => [JSON.generate(ROOM)] }, restored)
      refute_equal welcome["sid"], restored["sid"]

      command(client, "history", history: { streams: position(last) })
      assert_equal ["meanwhile"], heard_messages(client, 1)
      assert_equal "confirm_history", heard(client)["type"]
      broadcast(server, "after")
      assert_equal ["after"], heard_messages(client, 1)
    end
  end

  # An old client may not ask for the history.
  def test_a_restored_client_hears_what_comes_after_it
    server = extended_cable
    former, welcome = welcomed(server)
    subscribe(former)
    former.close(1000)
    client, restored = welcomed(server, sid: welcome["sid"])
    broadcast(server, "after")

    assert restored["restored"]
    assert_equal ["after"], heard_messages(client, 1)
    assert_nothing_heard(client)
  end

  def test_subscriptions_that_were_left_are_not_restored
    server = extended_cable
    other = { channel: "RoomChannel", room: "other" }
    former, welcome = welcomed(server)
    [ROOM, other].each { |room| subscribe(former, room) }
    command(former, "unsubscribe", other)
    assert_nothing_heard(former)
    former.drop(reset: true)
    _, restored = welcomed(server, sid: welcome["sid"])

    assert_equal [JSON.generate(ROOM)], restored["restored_ids"]
  end

  def test_a_restored_session_can_be_restored
    server = extended_cable
    client, welcome = welcomed(server)
    subscribe(client)
    3.times do
      client.drop(reset: true)
      client, welcome = welcomed(server, sid: welcome["sid"])
      assert_equal [JSON.generate(ROOM)], welcome["restored_ids"]
    end
  end

  def test_nobody_restores_the_session_of_somebody_else
    server = extended_cable
    former, welcome = welcomed(server, "ann")
    subscribe(former)
    former.drop(reset: true)
    client, other = welcomed(server, "eve", sid: welcome["sid"])

    assert_equal %w[type sid], other.keys
    broadcast(server, "secret")
    subscribe(client, { channel: "RoomChannel", room: "other" })
  end

  def test_unknown_and_malformed_ids_begin_a_new_session
    server = extended_cable
    ["x", "", "A" * 22, "../../etc", "%00", "A" * 5000].each do |sid|
      _, welcome = welcomed(server, sid: sid)
      assert_equal %w[type sid], welcome.keys, sid
    end
    assert_equal "nil", evaluate(server, 'Fairlead::Cable::Extended::Session.find("\xff".dup.force_encoding("UTF-8"))')
  end

  def test_a_connection_that_is_refused_restores_nothing
    server = extended_cable
    former, welcome = welcomed(server)
    subscribe(former)
    client = web_socket(server, "/cable?sid=#{welcome["sid"]}", headers: ORIGIN, protocols: [PROTOCOL])

    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, heard(client))
  end

  def test_sessions_outlive_their_worker
    server = extended_cable
    former, welcome = welcomed(server)
    subscribe(former)
    subscribe(former, PROCESS)
    act(former, "pid", to: PROCESS)
    Process.kill(:KILL, told(former))
    assert_raises(Fairlead::Test::WebSocket::CutOff) { heard(former) }
    client, restored = welcomed(server, sid: welcome["sid"])
    broadcast(server, "after")

    assert_equal [ROOM, PROCESS].map { |channel| JSON.generate(channel) }, restored["restored_ids"]
    assert_equal ["after"], heard_messages(client, 1)
  end
end
