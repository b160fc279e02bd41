# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The board: one handler for WebSockets and event streams.
class BoardApplicationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_one_handler_serves_both
    [[], ["-w", 2]].each do |arguments|
      server = board(*arguments)
      writers = Array.new(3) { web_socket(server) }
      readers = Array.new(3) { event_stream(server) }
      writers.each { |writer| assert_equal [:text, "you are writing"], writer.receive }
      readers.each { |reader| assert_equal "you are reading", reader.receive.data }

      writers.first.send_text("two\nlines")
      writers.each { |writer| assert_equal "two\nlines", writer.receive.last }
      readers.each { |reader| assert_equal "two\nlines", reader.receive.data }
    end
  end

  def test_the_headers_of_the_application_are_sent_and_its_refusals_count
    server = board

    assert_equal "main", web_socket(server)["x-board"]
    assert_equal ["main", 200], event_stream(server).then { |stream| [stream["x-board"], stream.status] }
    assert_equal 403, assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server, "/?banned") }.status
    assert_equal 403, event_stream(server, "/?banned").status
    assert_equal 426, get(server).status
  end

  def test_the_handler_can_close
    server = board
    writer = web_socket(server)
    reader = event_stream(server)
    assert_equal "you are reading", reader.receive.data
    writer.receive
    writer.send_text("bye")

    assert_equal "bye", reader.receive.data
    writer.receive_close(skip: true)
    assert_predicate writer, :ended?
  end

  private

  def board(*arguments) = serve(nil, "--dir", File.join(__dir__, "board"), *arguments)
end
