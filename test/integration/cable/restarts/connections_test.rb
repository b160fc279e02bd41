# frozen_string_literal: true

require "test_helper"
require "support/event_stream"
require "support/moving_cable"

# Connections of Action Cable go on in new code, and clients do not notice.
class MovingConnectionsTest < Minitest::Test
  include Fairlead::Test::MovingCable
  include Fairlead::Test::EventStreams

  parallelize_me!

  # Rails sees the end of each connection and a new one.
  def test_clients_notice_nothing_and_rails_sees_new_connections
    server = moving_cable
    clients = %w[ann bob eve].map { |name| in_room(server, name) }
    clients.each { |client| enter(client, { channel: "RoomChannel", room: "other" }) }
    renew(server)

    assert_equal(%w[ann bob eve].map { |name| answer("x", name: name) }, clients.map { |client| asked(client, "x") })
    speak(server, "to others", "other")
    clients.each do |client|
      assert_equal "to others", told(client)
      assert_quiet(client)
    end
    assert_equal ["subscribed 1", "subscribed 1", "unsubscribed 1", "unsubscribed 1", "subscribed 2", "subscribed 2"],
                 events(server).grep(/ann/).map { |event| event.sub(" ann", "") }
    assert_match(%r{Finished "/cable\?name=ann" \[WebSocket\].*Started GET "/cable\?name=ann" \[WebSocket\]}m, log(server))
    assert_equal 3, connections(server)
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'ann').disconnect")
    assert_equal 1000, ended(clients.first)
    assert_empty server.stderr
  end

  def test_broadcasts_arrive_once_and_in_order_while_workers_are_replaced
    server = moving_cable
    clients = Array.new(3) { |number| in_room(server, "client#{number}") }
    enter(clients.first, { channel: "BlockChannel" })
    ending = false
    sent = 0
    publisher = Thread.new { speak(server, sent += 1) until ending || sent == 600 }
    renew(server)
    renew(server, signal: :USR2, kind: "hot restart")
    ending = true
    publisher.join

    clients.drop(1).each { |client| assert_equal (1..sent).to_a, heard_messages(client, sent) }
    blocks, plain = heard_messages(clients.first, 2 * sent).partition { |message| message.is_a?(Hash) }
    assert_equal (1..sent).to_a, plain
    assert_equal((1..sent).to_a, blocks.map { |message| message["got"] })
    assert_equal "ping", JSON.parse(clients.last.receive.last)["type"]
  end

  # Streams without Ruby do not wait for the application; blocks and commands do. A remote disconnect comes after the end of the
  # connection in the old worker, and before the beginning of the one in the new worker.
  def test_messages_and_remote_disconnects_before_the_application_has_connected
    server = moving_cable(code: "map('/events') { run Fairlead::Cable::Events.new }")
    client = in_room(server)
    enter(client, { channel: "BlockChannel" })
    gone = in_room(server, "bob")
    stream = event_stream(server, "/events?name=bob&channel=PlainChannel")
    server.write("wait", "")
    renew(server)
    wait_until("the end in the old code") { events(server).grep(/^unsubscribed/).size == 2 }
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'bob').disconnect")
    3.times { |number| speak(server, number) }
    act(client, "answer", text: "early")
    assert_equal [0, 1, 2], heard_messages(client, 3)
    File.delete(server.path("wait"))

    late = heard_messages(client, 4)
    assert_equal(3.times.map { |number| { "block" => "2", "got" => number } } + [answer("early")], late.sort_by { |one| one["got"] || 9 })
    assert_equal 1000, ended(gone)
    assert_equal :last_chunk, stream.end_of_stream
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
