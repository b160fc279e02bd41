# frozen_string_literal: true

require "test_helper"
require "support/moving_cable"

# Connections of Action Cable go on in new code, and clients do not notice.
class MovingConnectionsTest < Minitest::Test
  include Fairlead::Test::MovingCable

  parallelize_me!

  { "phased restart" => :USR1, "hot restart" => :USR2 }.each do |kind, signal|
    define_method("test_clients_notice_nothing_of_a_#{kind.tr(" ", "_")}") do
      server = moving_cable
      clients = %w[ann bob eve].map { |name| in_room(server, name) }
      clients.each { |client| enter(client, { channel: "RoomChannel", room: "other" }) }
      renew(server, signal: signal, kind: kind)

      assert_equal(%w[ann bob eve].map { |name| answer("x", name: name) }, clients.map { |client| asked(client, "x") })
      speak(server, "to all")
      clients.each { |client| assert_equal({ "identifier" => JSON.generate(ROOM), "message" => "to all" }, heard(client)) }
      speak(server, "to others", "other")
      clients.each do |client|
        assert_equal "to others", told(client)
        assert_quiet(client)
      end
      assert_empty server.stderr
    end
  end

  def test_callbacks_run_as_for_a_client_that_connects_again
    server = moving_cable
    client = in_room(server)
    renew(server)
    asked(client, "x")

    assert_equal ["subscribed ann 1", "unsubscribed ann 1", "subscribed ann 2"], events(server)
    assert_match(/Finished "\/cable\?name=ann" \[WebSocket\].*Started GET "\/cable\?name=ann" \[WebSocket\]/m, log(server))
    assert_equal 1, connections(server)
  end

  def test_broadcasts_arrive_once_and_in_order_while_workers_are_replaced
    server = moving_cable
    clients = Array.new(4) { |number| in_room(server, "client#{number}") }
    enter(clients.first, { channel: "BlockChannel" })
    ending = false
    sent = 0
    publisher = Thread.new { speak(server, sent += 1) until ending }
    3.times { |number| renew(server, times: number + 1) }
    ending = true
    publisher.join

    assert_operator sent, :>, 20
    clients.drop(1).each { |client| assert_equal (1..sent).to_a, heard_messages(client, sent) }
    blocks, plain = heard_messages(clients.first, 2 * sent).partition { |message| message.is_a?(Hash) }
    assert_equal (1..sent).to_a, plain
    assert_equal((1..sent).to_a, blocks.map { |message| message["got"] })
  end

  # Streams without Ruby do not wait for the application; blocks and commands do.
  def test_messages_that_arrive_before_the_application_has_connected
    server = moving_cable
    client = in_room(server)
    enter(client, { channel: "BlockChannel" })
    server.write("wait", "")
    renew(server)
    3.times { |number| speak(server, number) }
    act(client, "answer", text: "early")
    assert_equal [0, 1, 2], heard_messages(client, 3)
    File.delete(server.path("wait"))

    late = heard_messages(client, 4)
    assert_equal(3.times.map { |number| { "block" => "2", "got" => number } } + [answer("early")], late.sort_by { |one| one["got"] || 9 })
  end

  def test_pings_go_on
    server = moving_cable
    client = in_room(server)
    renew(server)
    asked(client, "x")

    assert_equal "ping", JSON.parse(client.receive.last)["type"]
  end

  def test_a_client_moves_many_times
    server = moving_cable
    client = in_room(server)
    5.times do |number|
      renew(server, times: number + 1)
      assert_equal answer(number.to_s), asked(client, number.to_s)
    end
    assert_equal 6, events(server).grep(/^subscribed/).size
    client.close(1000)
    wait_until("the end") { events(server).last == "unsubscribed ann 2" }
  end

  def test_remote_disconnects_reach_clients_that_have_moved
    server = moving_cable
    clients = %w[ann ann bob].map { |name| in_room(server, name) }
    renew(server)
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'ann').disconnect")

    clients.first(2).each { |client| assert_equal 1000, ended(client) }
    assert_equal answer("x", name: "bob"), asked(clients.last, "x")
  end

  # It comes after the end of the connection in the old worker, and before the beginning of the one in the new worker.
  def test_remote_disconnects_reach_clients_on_their_way
    server = moving_cable
    client = in_room(server)
    server.write("wait", "")
    renew(server)
    wait_until("the end in the old code") { events(server).include?("unsubscribed ann 1") }
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'ann').disconnect")
    File.delete(server.path("wait"))

    assert_equal 1000, ended(client)
  end

  def test_clients_of_another_adapter_connect_again
    server = moving_cable(adapter: "async")
    client = in_room(server)
    server.signal(:USR1)

    assert_equal 1012, ended(client)
  end

  private

  # The number of connections of both workers.
  def connections(server)
    found = {}
    wait_until("both workers") do
      found.store(*JSON.parse(evaluate(server, "[Process.pid, ActionCable.server.connections.size]")))
      found.size == 2
    end
    found.values.sum
  end
end
