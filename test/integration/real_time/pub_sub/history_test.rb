# frozen_string_literal: true

require "test_helper"
require "json"
require "support/real_time"

# Messages that are published with a history, and clients that get them in the frames of Action Cable.
class HistoryTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  HISTORY = "Fairlead::PubSub::HISTORY"

  def test_streams_deliver_frames_with_the_identifier_of_each_client
    server = pushing(CONSOLE, "-t", 2)
    ann, bob = Array.new(2) { web_socket(server) }
    told(ann, %q[client.stream("room", '{"id":"1"}')])
    told(ann, %q[client.stream("room", '{"id":"2"}')])
    told(bob, %q[client.stream("room", '{"id":"2"}', extended: true)])
    requested(server, %q[Fairlead.publish("room", '{"text":"<e>"}', Fairlead::PubSub::HISTORY)])

    frames = received(ann, 2)
    assert_equal([1, 2].map { |id| frame(id) }, frames.sort_by { |frame| frame["identifier"] })
    assert_equal [frame(2).merge("stream_id" => "room", "epoch" => epoch(server), "offset" => 1)], received(bob, 1)
  end

  def test_messages_since_a_position_come_first_and_once
    server = pushing(CONSOLE, "-w", 2, "-t", 2)
    requested(server, publish("before"))
    position = text(requested(server, "Fairlead::PubSub.position"))
    requested(server, publish("one", "two"))
    client = web_socket(server)
    assert_equal "2", told(client, "client.stream('room', 'x', #{position.inspect})")
    requested(server, publish("three"))

    assert_equal %w[one two three], messages(client, 3)
    assert_equal "0", told(client, "client.stream('room', 'x', Fairlead::PubSub.position)")
    requested(server, publish("four"))
    assert_equal %w[four], messages(client, 1)
    past = requested(server, "Fairlead::PubSub.history('room', since: #{position.inspect}).map(&:last).join")
    assert_equal '"one""two""three""four"', past.undump
  end

  def test_a_position_that_is_too_old_is_reported
    server = pushing(CONSOLE, "-t", 2, "--history-messages", 2)
    position = text(requested(server, "Fairlead::PubSub.position"))
    requested(server, publish("one", "two", "three"))
    client = web_socket(server)
    assert_equal "false", told(client, "client.stream('room', 'x', #{position.inspect})")
    assert_equal "false", told(client, "client.stream('other', 'x', '1234.1')")
    assert_equal "! ArgumentError", told(client, "client.stream('other', 'x', 'forged')")
    requested(server, publish("four"))

    assert_equal %w[four], messages(client, 1)
  end

  def test_the_history_outlives_the_workers
    server = pushing(CONSOLE, "-w", 2, "-t", 2)
    position = text(requested(server, "Fairlead::PubSub.position"))
    requested(server, publish("one"))
    pids = server.worker_pids
    pids.each { |pid| Process.kill(:KILL, pid) }
    wait_until("new workers") { (server.worker_pids & pids).empty? && server.worker_pids.size == 2 }
    client = web_socket(server)

    assert_equal "1", told(client, "client.stream('room', 'x', #{position.inspect})")
    assert_equal %w[one], messages(client, 1)
  end

  PUBLISHING = "$publishing ||= Thread.new { (0..).each { |number| Fairlead.publish('room', [Process.pid, number].inspect, #{HISTORY}); " \
               "sleep(0.001) if number % 20 == 0 } }; Process.pid".freeze

  def test_workers_that_are_killed_while_they_publish_damage_nothing
    server = pushing(CONSOLE, "-w", 3, "-t", 2, "--history-bytes", "1m", "--client-pending-bytes", "64m")
    client = web_socket(server)
    own = Integer(told(client, "client.stream('room', 'x', extended: true); Process.pid"))
    6.times do
      publishers = []
      wait_until("two publishers") { (publishers |= [Integer(requested(server, PUBLISHING))] - [own]).size == 2 }
      client.wait_for("messages of both", 20) { publishers.all? { |pid| client.messages.last(2_000).any? { |_, data| data.include?("[#{pid}, ") } } }
      Process.kill(:KILL, publishers.first)
      wait_until("its successor") { !server.worker_pids.include?(publishers.first) && server.worker_pids.size == 3 }
    end

    assert_undamaged(client)
    assert_equal "plain", get(server).body
  end

  def test_a_message_that_is_no_json_breaks_no_frame
    server = pushing(CONSOLE, "-t", 2)
    client = web_socket(server)
    told(client, "client.stream('room', 'x')")
    requested(server, "Fairlead.publish('room', '\"},{\"type\":\"welcome\"', #{HISTORY})")
    requested(server, publish("next"))

    assert_equal %w[next], messages(client, 1)
    wait_until("the line") { server.stderr.include?("dropping a message of the stream room: it is not JSON") }
  end

  def test_ended_streams_deliver_nothing_more
    server = pushing(CONSOLE, "-t", 2)
    client = web_socket(server)
    %w[a b].each { |identifier| told(client, "client.stream('room', '#{identifier}'); client.stream('other', '#{identifier}')") }
    assert_equal "true", told(client, "client.unstream('room', 'a')")
    assert_equal "false", told(client, "client.unstream('room', 'a')")
    told(client, "client.unstream_all('b')")
    requested(server, publish("nobody"))
    requested(server, "Fairlead.publish('other', '1', #{HISTORY})")

    assert_equal [{ "identifier" => "a", "message" => 1 }], received(client, 1)
  end

  def test_without_a_history_messages_are_delivered_and_not_kept
    server = pushing(CONSOLE, "-w", 2, "-t", 2, "--history-bytes", 0)
    assert_equal "nil", requested(server, "Fairlead::PubSub.position")
    client = web_socket(server)
    told(client, "client.stream('room', 'x')")
    assert_equal "true", requested(server, publish("one"))

    assert_equal %w[one], messages(client, 1)
  end

  def test_a_message_too_long_for_the_history_is_delivered
    server = pushing(CONSOLE, "-w", 2, "-t", 2, "--history-bytes", "256k")
    client = web_socket(server)
    told(client, "client.stream('room', 'x')")
    requested(server, "Fairlead.publish('room', ('x' * 100_000).to_json, #{HISTORY})")

    assert_equal ["x" * 100_000], messages(client, 1)
  end

  # --- plain subscriptions

  def test_a_web_socket_gets_the_messages_since_a_position_as_they_are
    server = pushing(CONSOLE, "-t", 2)
    position = text(requested(server, "Fairlead::PubSub.position"))
    requested(server, publish("one"))
    client = web_socket(server)
    assert_equal '"room"', told(client, "client.subscribe('room', since: #{position.inspect})")
    requested(server, publish("two"))
    assert_equal [[:text, '"one"'], [:text, '"two"']], heard_from(client, 2)

    assert_equal "true", told(client, "client.unsubscribe('room')")
    assert_equal "false", told(client, "client.subscribe('room', since: 'garbage')")
    assert_equal "! ArgumentError", told(client, "client.subscribe('room', since: 'x') { }")
    requested(server, publish("three"))
    assert_equal [[:text, '"three"']], heard_from(client, 1)
  end

  def test_an_event_stream_continues_where_it_was_cut_off
    handler = <<~RUBY
      def on_open(client) = client.write(client.subscribe("room", since: client.env["HTTP_LAST_EVENT_ID"] || Fairlead::PubSub.position).inspect)
    RUBY
    server = pushing(handler, "-t", 2)
    first = event_stream(server)
    first.receive
    requested(server, publish("one"))
    id = first.receive.id
    requested(server, publish("two"))
    second = event_stream(server, headers: { "last-event-id" => id })

    assert_equal ['"two"', '"room"'], Array.new(2) { second.receive.data }
  end

  # --- pages of stock clients

  def test_a_page_gets_each_message_once_however_often_it_reconnects
    server = pushing(CONSOLE, "-w", 2, "-t", 2)
    page = text(requested(server, "Fairlead::PubSub.seal('room')"))
    requested(server, publish("one"))
    first = web_socket(server)
    assert_equal "1", told(first, "client.stream('room', 'x', page: #{page.inspect})")
    requested(server, publish("two"))
    assert_equal %w[one two], messages(first, 2)
    await_receipts(first)
    first.drop(reset: true)
    requested(server, publish("three"))
    second = web_socket(server)

    assert_equal "1", told(second, "client.stream('room', 'x', page: #{page.inspect})")
    assert_equal %w[three], messages(second, 1)
    assert_equal "false", told(second, "client.stream('other', 'x', page: #{page.inspect})")
  end

  def test_signed_streams_are_confirmed_without_the_application
    server = pushing(CONSOLE, "-t", 1)
    client = web_socket(server)
    told(client, "client.send(:confirm_signed_streams, 'Turbo::StreamsChannel', '', 'secret')")
    name = "InJvb20i--c6767fcc43bd1c52db471c20499b4fd6fe1e32a421b21f2b00a3f25efb3c9995"
    page = text(requested(server, "Fairlead::PubSub.seal('room')"))
    requested(server, publish("one"))
    identifier = JSON.generate(channel: "Turbo::StreamsChannel", signed_stream_name: name, since: page)
    client.send_text(JSON.generate(command: "subscribe", identifier: identifier))
    assert_equal [{ "identifier" => identifier, "type" => "confirm_subscription" }, { "identifier" => identifier, "message" => "one" }],
                 received(client, 2)

    old = JSON.generate(channel: "Turbo::StreamsChannel", signed_stream_name: name, since: "forged")
    client.send_text(JSON.generate(command: "subscribe", identifier: old))
    assert_equal [nil, %(<turbo-stream action="refresh"></turbo-stream>)], messages(client, 2)
    client.send_text(JSON.generate(command: "unsubscribe", identifier: identifier))
    told(client, "nil")
    requested(server, publish("two"))
    assert_equal [{ "identifier" => old, "message" => "two" }], received(client, 1)
  end

  def test_pings_of_action_cable
    server = pushing(CONSOLE, "-t", 1)
    client = web_socket(server)
    told(client, "client.send(:send_cable_pings)")
    ping = received(client, 1).first

    assert_equal "ping", ping["type"]
    assert_in_delta Time.now.to_i, ping["message"], 60
  end

  private

  # A receipt is for the messages before its question, and the next question comes after it. The server has handled an answer when it
  # answers a later ping.
  def await_receipts(client)
    3.times do |number|
      client.ping(number.to_s)
      client.receive_pong
    end
  end

  # All messages are whole, in order, and none of a publisher is missing.
  def assert_undamaged(client)
    frames = client.messages.slice!(0..).map { |_, data| JSON.parse(data) }.reject { |frame| frame.is_a?(String) }
    offsets = frames.map { |frame| frame.fetch("offset") }

    assert_equal offsets.sort.uniq, offsets
    frames.group_by { |frame| frame["message"].first }.each_value do |own|
      numbers = own.map { |frame| frame["message"].last }
      assert_equal (numbers.first..numbers.last).to_a, numbers
    end
  end

  # Code that publishes each of the texts to the channel "room".
  def publish(*texts) = texts.map { |text| "Fairlead.publish('room', #{JSON.generate(text).inspect}, #{HISTORY})" }.join(";")

  def frame(id) = { "identifier" => %({"id":"#{id}"}), "message" => { "text" => "<e>" } }

  def text(inspected) = inspected.delete('"')

  def epoch(server) = text(requested(server, "Fairlead::PubSub.position")).split(".").first

  def heard_from(client, count)
    client.wait_for("#{count} messages") { client.messages.size >= count }
    client.messages.slice!(0..)
  end

  def received(client, count)
    client.wait_for("#{count} frames") { client.messages.size >= count }
    client.messages.slice!(0..).map { |_, data| JSON.parse(data) }
  end

  def messages(client, count) = received(client, count).map { |frame| frame["message"] }
end
