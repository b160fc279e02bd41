# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# Sessions that another connection restores.
class ExtendedRestorationTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  # `subscribed` fails if there is a file. The member has another id then.
  CODE = <<~'RUBY'
    class TroubleChannel < ActionCable::Channel::Base
      include Fairlead::Cable::Presence

      def subscribed
        stream_from("present")
        join_presence(id: ["member", params[:how], File.exist?("trouble")].join("-"))
        cause_trouble if File.exist?("trouble")
      end

      def cause_trouble
        case params[:how]
        when "reject" then reject
        when "raise" then raise "oh"
        when "not" then raise NotImplementedError
        when "exit" then exit
        when "kill" then Thread.current.kill
        end
      end
    end

    class SlowChannel < ActionCable::Channel::Base
      COUNT = Concurrent::AtomicFixnum.new
      def subscribed = COUNT.increment && sleep(0.02)
    end
  RUBY

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

  # The first connection broke before a message arrived. AnyCable's client then asks for the messages since the last ping.
  def test_a_restored_client_that_knows_no_position_gets_the_messages_since_its_page_was_made
    server = extended_cable
    page = { channel: "RoomChannel", since: evaluate(server, 'Fairlead::Cable.position("room")').delete('"') }
    broadcast(server, "while it loads")
    former, welcome = welcomed(server)
    command(former, "subscribe", page, history: { since: Time.now.to_i })
    assert_equal "confirm_subscription", heard(former)["type"]
    assert_equal ["while it loads"], heard_messages(former, 1) # in vain
    assert_equal "confirm_history", heard(former)["type"]
    assert_nothing_heard(former, to: page)
    former.drop(reset: true)
    broadcast(server, "meanwhile")
    client, welcome = welcomed(server, sid: welcome["sid"])
    assert welcome["restored"]
    command(client, "history", page, history: { since: Time.now.to_i + 60 })

    assert_equal ["while it loads", "meanwhile"], heard_messages(client, 2)
    assert_equal "confirm_history", heard(client)["type"]
    broadcast(server, "after")
    last = heard(client)
    assert_equal "after", last["message"]
    client.drop(reset: true)
    client, = welcomed(server, sid: welcome["sid"])
    command(client, "history", page, history: { streams: position(last), since: 1 })
    assert_equal "confirm_history", heard(client)["type"]
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

  def test_a_subscription_that_fails_is_left_out_and_is_no_member
    server = extended_cable(code: CODE)
    present = { channel: "PresentChannel" }
    watcher = joined(server, to: present)
    command(watcher, "presence", present)
    assert_equal "info", heard(watcher).dig("message", "type")
    former, welcome = welcomed(server)
    troubles = %w[reject raise not exit kill].map { |how| { channel: "TroubleChannel", how: how } }
    troubles.each { |channel| subscribe_among_members(former, channel) }
    subscribe_among_members(former, ROOM)
    File.write(server.path("trouble"), "")
    former.drop(reset: true)
    client, restored = welcomed(server, sid: welcome["sid"])

    assert_equal [JSON.generate(ROOM)], restored["restored_ids"]
    broadcast(server, "after")
    wait_until("the message") { heard(client)["message"] == "after" } # after a rejection
    File.delete(server.path("trouble"))
    subscribe_among_members(client, troubles.first)
    assert_equal "member-reject-false", told(watcher)["id"]
    command(watcher, "presence", present)
    assert_equal(["member-reject-false"], told(watcher)["records"].map { |member| member["id"] })
  end

  def test_a_restoration_takes_turns
    server = extended_cable("-w", 0, "-t", 1, code: CODE)
    former, welcome = welcomed(server)
    40.times { |number| subscribe(former, { channel: "SlowChannel", number: number }) }
    former.drop(reset: true)
    wait_for_connections(server, 0)
    clients = Array.new(2) do
      client = web_socket(server, "/cable?name=ann&sid=#{welcome["sid"]}", headers: ORIGIN, protocols: [PROTOCOL])
      assert_operator Integer(evaluate(server, "SlowChannel::COUNT.value")), :<, 80
      client
    end
    wait_for_connections(server, 2)
    evaluate(server, "ActionCable.server.connections.last.close(reason: 'enough')")
    assert_equal "enough", heard(clients.last)["reason"]
    assert_equal 40, heard(clients.first)["restored_ids"].size
  end

  def test_a_session_that_is_too_large_is_forgotten
    server = extended_cable
    former, welcome = welcomed(server)
    rooms = Array.new(41) { |number| { channel: "RoomChannel", room: "room#{number}", pad: "x" * 400 } }
    rooms.each { |room| subscribe(former, room) }
    command(former, "unsubscribe", rooms.first)
    assert_nothing_heard(former, to: rooms.last)
    former.drop(reset: true)
    client, restored = welcomed(server, sid: welcome["sid"])
    assert_equal rooms.drop(1).map { |room| JSON.generate(room) }, restored["restored_ids"]
    2.times { |number| subscribe(client, { channel: "RoomChannel", number: number, pad: "x" * 7_500 }) }
    client.drop(reset: true)
    wait_for_connections(server, 0)

    assert_equal %w[type sid], welcomed(server, sid: restored["sid"]).last.keys
  end

  def test_a_client_cannot_take_the_history_of_others
    server = extended_cable("--history-bytes", "256k")
    victim, welcome = welcomed(server)
    subscribe(victim)
    broadcast(server, "before")
    last = heard(victim)
    victim.drop(reset: true)
    broadcast(server, "meanwhile")
    10.times { take_history(server) }
    client, restored = welcomed(server, sid: welcome["sid"])
    assert restored["restored"]
    command(client, "history", history: { streams: position(last) })
    assert_equal ["meanwhile"], heard_messages(client, 1)
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

  # The session has more changes than a channel keeps messages.
  def test_sessions_outlive_their_worker
    server = extended_cable("--history-messages", 1)
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

  private

  # Subscribes several times, and closes.
  def take_history(server)
    client, = welcomed(server, "eve")
    10.times do |number|
      room = { channel: "RoomChannel", room: "room#{number % 2}", pad: "x" * 7_000 }
      number % 4 < 2 ? subscribe(client, room) : command(client, "unsubscribe", room)
    end
    client.drop(reset: true)
  end

  def wait_for_connections(server, count)
    wait_until("#{count} connections") { evaluate(server, "ActionCable.server.connections.size") == count.to_s }
  end

  # Members come and go meanwhile.
  def subscribe_among_members(client, to)
    command(client, "subscribe", to)
    wait_until("the confirmation") { heard(client)["type"] == "confirm_subscription" }
  end
end
