# frozen_string_literal: true

require "test_helper"
require "stringio"
require "time"

class EventLogJsonTest < Minitest::Test
  def setup
    @output = StringIO.new
    @errors = StringIO.new
    @log = Fairlead::EventLog.new(format: :json, prefix: true, debug: true, output: @output, errors: @errors)
  end

  def test_a_message_is_an_object_in_a_line
    @log.stopped
    entry = JSON.parse(@output.string)

    assert_equal %w[time level pid event message], entry.keys
    assert_equal ["info", Process.pid, "stopped", "fairlead stopped"], entry.values.drop(1)
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/, entry["time"])
    assert_in_delta Time.now, Time.iso8601(entry["time"]), 60
    assert_equal 1, @output.string.lines.size
  end

  def test_the_event_is_named_like_the_method_that_was_called_at_every_level
    @log.thread_serves("one")
    @log.supervisor_gone
    @log.hook_failed(:boot, RuntimeError.new("no"))
    @log.engine_failed("[BUG] odd")
    @log.request_served("GET /")

    assert_equal [%w[debug thread_serves], %w[info request_served]], events(@output)
    assert_equal [%w[warn supervisor_gone], %w[error hook_failed], %w[error engine_failed]], events(@errors)
  end

  def test_a_message_of_several_lines_or_with_odd_bytes_is_still_one_line
    @log.app_failed(RuntimeError.new("one\ntwo \xFF"), "GET /")

    assert_equal 1, @errors.string.lines.size
    assert_includes JSON.parse(@errors.string)["message"], "two"
  end

  private

  def events(stream) = stream.string.lines.map { |line| JSON.parse(line).values_at("level", "event") }
end
