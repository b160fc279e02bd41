# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The clock: a timer that writes to every client of a list.
class ClockApplicationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  TIME = /\A\d\d:\d\d:\d\d\z/

  def test_it_ticks_for_sockets_and_streams
    [[], ["-w", 2], ["-w", 2, "--no-preload"]].each do |arguments|
      server = serve(nil, "--dir", File.join(__dir__, "clock"), *arguments)
      assert_includes get(server).body, "EventSource"
      sockets = Array.new(4) { web_socket(server) }
      streams = Array.new(4) { event_stream(server) }

      sockets.each { |socket| socket.receive.then { |type, time| assert_equal [:text, true], [type, TIME.match?(time)] } }
      streams.each { |stream| stream.receive.then { |event| assert_equal [nil, true], [event.event, TIME.match?(event.data)] } }
      assert_equal "text/event-stream", streams.first["content-type"]
    end
  end

  def test_it_ticks_once_a_second
    socket = web_socket(serve(nil, "--dir", File.join(__dir__, "clock")))
    socket.receive
    # On a busy machine, two of three late ticks may fall into the same second.
    times = socket.receive_all(4)

    assert_operator times.uniq.size, :>=, 3
  end

  def test_who_has_gone_is_written_to_no_more
    server = serve(nil, "--dir", File.join(__dir__, "clock"))
    sockets = Array.new(3) { web_socket(server) }
    stream = event_stream(server)
    wait_until("all on the list") { get(server, "/size").body == "4" }
    sockets[0].close(1000).receive_close
    sockets[1].drop(reset: true)
    stream.drop

    wait_until("one visitor on the list") { get(server, "/size").body == "1" }
    assert_match TIME, sockets[2].receive.last
    assert_empty server.stderr
  end
end
