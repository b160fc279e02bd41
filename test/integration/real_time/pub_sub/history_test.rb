# frozen_string_literal: true

require "test_helper"
require "json"
require "support/kept_messages"
require "support/pausing"

# Messages that are published with a history, and clients that get them in the frames of Action Cable.
class HistoryTest < Minitest::Test
  include Fairlead::Test::KeptMessages
  include Fairlead::Test::Pausing

  parallelize_me!

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

  def test_a_name_longer_than_the_history_stops_nobody
    server = pushing(CONSOLE, "-w", 2, "-t", 2, "--history-bytes", "256k")
    client = web_socket(server)
    told(client, "client.stream('room', 'x')")
    requested(server, "Fairlead.publish('x' * 400_000, '1', #{HISTORY})")
    requested(server, publish("next"))

    assert_equal %w[next], messages(client, 1)
  end

  def test_a_worker_that_has_lost_messages_ends_its_streams
    server = pushing(CONSOLE, "-w", 2, "-t", 2, "--history-bytes", "256k", "--worker-timeout", 60)
    client = web_socket(server)
    stopped = Integer(told(client, "client.stream('room', 'x'); Process.pid"))
    pause_processes([stopped])
    requested(server, "60.times { Fairlead.publish('room', ('x' * 10_000).dump, #{HISTORY}) }")
    resume_processes([stopped])

    assert_equal [1013, "this process has lost messages"], client.receive_close
  ensure
    resume_processes([stopped].compact)
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

  def assert_undamaged(client)
    frames = client.messages.slice!(0..).map { |_, data| JSON.parse(data) }.reject { |frame| frame.is_a?(String) }
    offsets = frames.map { |frame| frame.fetch("offset") }

    assert_equal offsets.sort.uniq, offsets
    frames.group_by { |frame| frame["message"].first }.each_value do |own|
      numbers = own.map { |frame| frame["message"].last }
      assert_equal (numbers.first..numbers.last).to_a, numbers
    end
  end

  def frame(id) = { "identifier" => %({"id":"#{id}"}), "message" => { "text" => "<e>" } }

  def epoch(server) = text(requested(server, "Fairlead::PubSub.position")).split(".").first
end
