# frozen_string_literal: true

require "test_helper"
require "support/outside_publishers"
require "support/processes"

# Processes that break the rules of the publish socket: their connection ends with one line in the log, and others go on.
class PublishSocketHostileTest < Minitest::Test
  include Fairlead::Test::OutsidePublishers
  include Fairlead::Test::Processes

  # Bytes => the reason for the end.
  WRONG = {
    "GET / HTTP/1.1\r\nhost: shop\r\n\r\n" => "its message is longer than 16 MiB",
    [4, 0, 0].pack("NCN") => "it does not speak the protocol",
    [9, 0, 100].pack("NCN") => "it does not speak the protocol",
    [(16 * 1024**2) + 1, 0, 4].pack("NCN") => "its message is longer than 16 MiB"
  }.freeze

  WRONG.each_with_index do |(bytes, reason), number|
    define_method(:"test_bytes_that_are_no_request_end_the_connection_#{number}") do
      server = hearing(0)
      socket = raw(server)
      socket.write(request("news", "before"), bytes)

      assert_equal "\0" * 5, ended(socket), "the message before them is taken"
      assert_closed(server, reason)
    end
  end

  def test_an_incomplete_message_ends_the_connection_after_a_while
    server = hearing(0)
    socket = raw(server)
    socket.write(request("news", "hello")[0..-2])

    assert_empty ended(socket)
    assert_closed(server, "its message was incomplete for 5 s")
  end

  def test_a_process_that_reads_no_reply_is_closed
    server = hearing(0)
    socket = raw(server)
    many = request("nobody", "") * 5000
    written = assert_raises(Errno::EPIPE, Errno::ECONNRESET) { loop { socket.write(many) } }

    assert_kind_of SystemCallError, written
    assert_closed(server, "it does not read the replies")
  end

  def test_incomplete_messages_take_no_more_than_64_mebibytes
    server = hearing(0)
    before = memory(server.pid)
    sockets = Array.new(6) { raw(server) }
    threads = sockets.map { |socket| Thread.new { socket.write([16_000_000, 0, 4].pack("NCN"), "x" * 15_000_000) rescue nil } } # rubocop:disable Style/RescueModifier -- it may be closed
    wait_for_line(server, /incomplete messages take too much memory/)
    assert_operator memory(server.pid) - before, :<, 128 * 1024**2
    threads.each(&:join)
    assert_publishes(server)
  end

  def test_a_message_with_a_flag_of_the_future_is_not_published_and_the_connection_goes_on
    server = hearing(0)
    socket = raw(server)
    socket.write(request("news", "new kind", flags: 128), request("news", "hello"))

    assert_equal [2, 0, 0, 0, 1, *[0] * 5], socket.read(10).bytes
    wait_for_hearing(server, "hello")
    assert_equal [["hello"]], heard(server).values
    assert_empty server.stderr
  end

  def test_the_connection_that_was_unused_longest_gives_way
    server = hearing(0)
    publisher, log = publisher(server)
    assert publisher.publish("news", "first")
    sockets = Array.new(128) { raw(server).tap { |socket| ask(socket, "x") } }

    assert publisher.publish("news", "second"), "it connects again"
    assert_empty ended(sockets.first)
    assert_equal [0] * 5, ask(sockets.last, "x")
    assert_empty log.string
    assert_empty server.stderr
  end

  def test_a_flood_of_wrong_connections_fills_neither_the_log_nor_the_server
    server = hearing(0)
    500.times do
      raw(server).write("GET / HTTP/1.1\r\n")
    rescue SystemCallError
      nil # it was closed to make room
    end
    assert_publishes(server)

    assert_operator server.stderr.lines.size, :<=, 3
  end

  def test_a_server_that_hangs_delays_a_process_once
    server = hearing(0)
    publisher, log = publisher(server)
    assert publisher.publish("news", "before")
    server.signal(:STOP)
    wait_until("the stop") { state(server.pid) == "T" }
    seconds = seconds_of { refute publisher.publish("news", "lost") }
    100.times { refute publisher.publish("news", "lost, too") }
    server.signal(:CONT)
    wait_until("its return", seconds: 20) { publisher.publish("news", "after") }

    assert_in_delta Fairlead::PubSub::RunningServer::TIMEOUT, seconds, 2
    assert_match(/\AERROR the server on .* has not taken a message within 5 s; .*\nINFO .* is back; \d+ messages were lost\n\z/, log.string)
  end

  private

  # Returns what arrives until the connection ends.
  def ended(socket)
    socket.read
  rescue Errno::ECONNRESET
    ""
  end

  def ask(socket, message)
    socket.write(request("nobody", message))
    socket.read(5).bytes
  end

  def assert_closed(server, reason)
    process = Fairlead::Native.portable? ? "a process" : "process #{Process.pid}"
    wait_for_line(server, /closed a connection to unix:\S+ from #{process} of user #{Process.euid}: #{reason}$/)
    assert_publishes(server)

    assert_equal 1, server.stderr.lines.size
  end

  def assert_publishes(server)
    publisher, = publisher(server)
    assert publisher.publish("news", "the server goes on")
    wait_for_hearing(server, "the server goes on")
  end
end
