# frozen_string_literal: true

require "test_helper"
require "json"
require "support/real_time"

# The stream of examples/clock; test/browser has the page.
class ClockTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  # A machine that pauses may skip a second; no second may come twice.
  def test_each_client_gets_one_tick_a_second
    server = clock("-w", 3)
    streams = Array.new(3) { event_stream(server, "/ticks") }

    streams.each do |stream|
      ids = ticks(stream, 3).map { |event| Integer(event.id, 10) }
      assert_equal ids.uniq.sort, ids
    end
  end

  def test_it_works_when_it_is_loaded_before_the_workers
    stream = event_stream(clock("-w", 2, "--preload"), "/ticks")

    assert_equal %w[tick tick], ticks(stream, 2).map(&:event)
  end

  def test_who_comes_back_is_told_what_it_had_last
    server = clock
    first = event_stream(server, "/ticks")
    again = event_stream(server, "/ticks", headers: { "last-event-id" => "1234567" })

    assert_equal [nil, 1_234_567], [first, again].map { |stream| JSON.parse(stream.receive.data)["last"] }
    assert_equal 1000, again.reconnection_time
  end

  def test_who_wants_no_stream_is_told_how_to_ask
    assert_equal [406, 404], ["/ticks", "/none"].map { |path| get(clock_server, path).status }
  end

  private

  def clock(*arguments) = serve(nil, "--dir", "#{ROOT}/examples/clock", *arguments)
  def clock_server = @clock_server ||= clock

  # The next ticks of a new stream.
  def ticks(stream, count)
    Array.new(count + 1) { stream.receive }.reject { |event| event.event == "hello" }
  end
end
