# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The end of a server with WebSockets and event streams: their handlers are informed, their last writes are sent, and the
# server does not wait for vanished clients.
class RealTimeShutdownTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  FAREWELL = <<~RUBY
    def on_open(client) = client.write("open")
    def on_message(client, data) = (Notes.add("began"); sleep 0.5; client.write("finished"))
    def on_shutdown(client) = client.write("going down")
    def on_close(client) = Notes.add("closed")
  RUBY

  SHAPES = [["-t", 2], ["-w", 2, "-t", 2]].freeze

  def test_web_sockets_are_told_and_closed
    each_shape do |server|
      clients = Array.new(6) { web_socket(server) }
      clients.each(&:receive)
      server.signal(:TERM)

      clients.each { |client| assert_equal [:text, "going down"], client.receive }
      assert_equal [1001], clients.map { |client| client.receive_close.first }.uniq
      assert clients.all?(&:ended?)
      assert_equal 0, server.wait_exit.exitstatus
      assert_equal ["closed"] * 6, notes(server)
    end
  end

  def test_event_streams_end_with_their_last_chunk
    each_shape do |server|
      streams = Array.new(4) { event_stream(server) }
      streams.each(&:receive)
      server.signal(:TERM)

      assert_equal ["going down"], streams.map { |stream| stream.receive.data }.uniq
      assert_equal [:last_chunk], streams.map(&:end_of_stream).uniq
      streams.each(&:drop)
      assert_equal 0, server.wait_exit.exitstatus
      assert_equal ["closed"] * 4, notes(server)
    end
  end

  def test_callbacks_that_run_are_waited_for
    each_shape do |server|
      client = web_socket(server)
      client.receive
      client.send_text("work")
      assert_equal ["began"], wait_for_notes(server, 1)
      server.signal(:TERM)

      assert_equal ["finished", "going down"], client.receive_all(2).sort
      assert_equal 1001, client.receive_close.first
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_silent_clients_do_not_delay_the_end
    each_shape do |server|
      clients = Array.new(5) { web_socket(server).tap { |client| client.answers_pings = false } }

      assert_ends_before_its_timeout server
      assert_equal [1001], clients.map { |client| client.receive_close(skip: true).first }.uniq
    end
  end

  def test_a_callback_that_never_returns_is_cut_off_after_the_shutdown_timeout
    server = pushing("def on_message(client, data) = (Notes.add('began'); sleep)", "--shutdown-timeout", 1)
    web_socket(server).send_text("hang")
    wait_for_notes(server, 1)

    assert_operator seconds_of { server.stop }, :>=, 0.9
  end

  def test_clients_whose_on_shutdown_hangs_get_a_close_frame_after_the_shutdown_timeout
    [["-t", 1], ["-w", 1, "-t", 4]].each do |arguments|
      server = pushing("def on_shutdown(client) = (client.write('last words'); sleep)", "--shutdown-timeout", 1, *arguments)
      clients = Array.new(3) { web_socket(server) }
      streams = Array.new(3) { event_stream(server) }
      server.signal(:TERM)

      heard = clients.map { |client| [(client.wait_for("the end") { client.over? } && client.closing)&.first, client.ended?] }
      assert_equal [[1001, true]], heard.uniq
      assert_operator clients.flat_map(&:messages), :include?, [:text, "last words"]
      assert_equal [:last_chunk], streams.map(&:end_of_stream).uniq
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_who_comes_late_is_told_at_once
    server = pushing(FAREWELL)
    idle = TCPSocket.new("127.0.0.1", server.port)
    assert_equal "plain", adopt(idle).get.body
    busy = web_socket(server)
    assert_equal [:text, "open"], busy.receive
    busy.send_text("work")
    wait_for_notes(server, 1)
    server.signal(:TERM)
    server.wait_for_output(/finishing open requests/)
    late = adopt_web_socket(Fairlead::Test::WebSocket.over(idle))

    assert_equal ["open", "going down"], late.receive_all(2)
    assert_equal 1001, late.receive_close.first
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  def each_shape
    SHAPES.each { |arguments| yield pushing(FAREWELL, *arguments) }
  end
end
