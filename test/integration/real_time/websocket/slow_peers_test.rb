# frozen_string_literal: true

require "test_helper"
require "support/processes"
require "support/real_time"

# Peers that do not read their messages, while others read everything: a limit of the buffer for each, and an option for the
# messages beyond it.
class SlowPeersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Processes

  LISTENING = <<~RUBY
    def on_open(client) = client.subscribe("all")
    def on_message(client, data) = client.write(data)
    def on_close(client) = Notes.add("closed \#{client.env["PATH_INFO"]}")
  RUBY

  MESSAGE = "x" * 20_000

  def test_who_takes_nothing_is_cut_off_and_everybody_else_gets_everything
    server = pushing(LISTENING, "-t", 2, "--client-pending-bytes", "200k")
    quick = Array.new(5) { web_socket(server) }
    slow = slow_web_socket(server, "/slow")
    assert_ready([slow, *quick])
    farewell = Thread.new do
      assert_logged(server, 1)
      slow.receive_close(skip: true)
    end

    assert_equal [(0...1000).to_a] * 5, publish(server, 1000, quick)
    assert_equal 1013, farewell.value.first
    assert slow.ended?
    slow.drop
    assert_equal ["closed /slow"], wait_for_notes(server, 1)
    assert_served(server, quick.first)
  end

  def test_who_takes_nothing_for_ever_is_gone_all_the_same
    server = pushing(LISTENING, "-t", 2, "--client-pending-bytes", "200k", "--write-timeout", 1)
    quick = [web_socket(server)]
    slow = slow_web_socket(server, "/slow")
    assert_ready([slow, *quick])
    before = descriptors(server.serving_pid)
    publish(server, 300, quick)

    assert_equal ["closed /slow"], wait_for_notes(server, 1)
    wait_until("the connection to be closed") { descriptors(server.serving_pid) < before }
  end

  def test_messages_are_dropped_instead_if_so_configured
    server = pushing(LISTENING, "-t", 2, "--client-pending-bytes", "200k", "--client-overflow", "drop")
    quick = Array.new(2) { web_socket(server) }
    slow = slow_web_socket(server, "/slow")
    assert_ready([slow, *quick])

    assert_equal [(0...500).to_a] * 2, publish(server, 500, quick)
    wait_until("the slow client to get the newest message") do
      publish(server, 1, quick)
      slow.take_in
      slow.messages.size > 1 && numbers(slow).last.zero?
    end

    assert_empty notes(server), "no client was closed"
    assert_operator numbers(slow).size, :<, 500
    assert_equal numbers(slow).uniq, numbers(slow).reject(&:zero?).sort.unshift(0), "the remaining messages are in order"
  end

  def test_a_write_beyond_the_limit_says_so
    server = pushing("#{LISTENING}\ndef on_message(client, data) = Notes.add(Array.new(400) { client.write('x' * 20_000) }.tally.inspect)",
                     "--client-pending-bytes", "200k", "--client-overflow", "drop")
    slow = slow_web_socket(server, "/slow")
    slow.send_text("go")
    tally = eval(wait_for_notes(server, 1).first) # rubocop:disable Security/Eval

    assert_equal 400, tally.values.sum
    assert_operator tally[true], :>, 0
    assert_operator tally[false], :>, 0
    slow.wait_for("every accepted message") { slow.messages.size == tally[true] }
  end

  def test_many_who_take_nothing_cost_no_more_than_their_bound
    server = pushing(LISTENING, "-t", 2, "--client-pending-bytes", "100k", "--client-overflow", "drop")
    quick = [web_socket(server)]
    slow = Array.new(50) { slow_web_socket(server, "/slow") }
    assert_ready([*slow, *quick])
    before = memory(server.serving_pid)
    publish(server, 500, quick)

    assert_operator memory(server.serving_pid) - before, :<, (50 * 100_000) + 30_000_000
  end

  # A message is stored once for all clients that have not read it yet.
  def test_a_published_message_is_kept_once
    server = pushing(LISTENING, "-t", 2, "--client-pending-bytes", "4m")
    slow = Array.new(50) { slow_web_socket(server, "/slow") }
    assert_ready(slow)
    before = memory(server.serving_pid)
    requested(server, "Fairlead.publish('all', 'x' * 2_000_000)")

    assert_operator memory(server.serving_pid) - before, :<, 40_000_000
    slow.each { |client| client.socket.setsockopt(:SOCKET, :RCVBUF, 1 << 20) }
    assert_equal [2_000_000], Fairlead::Test::WebSocket::Pool.new(slow).receive_all(1).flatten.map(&:size).uniq
  end

  private

  def slow_web_socket(server, path)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 4096)
    socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
    adopt_web_socket(Fairlead::Test::WebSocket.over(socket, path))
  end

  # Waits for a message to each client: its subscription is active.
  def assert_ready(clients)
    clients.each { |client| assert_equal [:text, "ready"], client.send_text("ready").receive }
  end

  # Publishes so many numbered messages, in portions that +quick+ can read; returns the numbers that each received.
  def publish(server, count, quick)
    pool = Fairlead::Test::WebSocket::Pool.new(quick)
    received = quick.map { [] }
    (0...count).each_slice(10) do |slice|
      requested(server, "#{slice}.each { |n| Fairlead.publish('all', n.to_s + ' ' + '#{MESSAGE[0]}' * #{MESSAGE.size}) }")
      pool.receive_all(slice.size).each_with_index { |texts, index| received[index].concat(texts.map(&:to_i)) }
    end
    received
  end

  def numbers(client) = client.messages.map { |_, text| text.to_i }
end
