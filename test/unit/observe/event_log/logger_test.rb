# frozen_string_literal: true

require "test_helper"
require "logger"
require "stringio"

class EventLogLoggerTest < Minitest::Test
  # A logger without #debug.
  Small = Struct.new(:lines) do
    %i[info warn error].each { |level| define_method(level) { |text| lines << "#{level} #{text}" } }
  end

  def test_the_levels_of_messages_are_those_of_the_logger
    io = StringIO.new
    speak(Fairlead::EventLog.new(logger: ::Logger.new(io, formatter: ->(level, _, _, text) { "#{level} #{text.lines.first.chomp}\n" }), debug: true))

    assert_equal ["DEBUG thread one serves", "INFO fairlead stopped", "WARN the supervisor is gone; finishing open requests"],
                 io.string.lines(chomp: true).first(3)
    assert_match(/^ERROR boot failed: .*no \(RuntimeError\)$/, io.string)
  end

  def test_a_logger_without_debug_gets_the_others
    speak(Fairlead::EventLog.new(logger: (small = Small.new([])), debug: true))

    assert_equal(%w[info warn error], small.lines.map { |line| line[/\w+/] })
  end

  def test_a_formatter_works_on_the_text_before
    Fairlead::EventLog.new(logger: (small = Small.new([])), formatter: ->(text) { "<#{text}>\n" }).stopped

    assert_equal ["info <fairlead stopped>"], small.lines
  end

  def test_a_logger_that_raises_harms_nobody
    raising = Object.new
    %i[info warn error].each { |level| raising.define_singleton_method(level) { |_| raise "full" } }

    speak(Fairlead::EventLog.new(logger: raising))
  end

  private

  def speak(log)
    log.thread_serves("one")
    log.stopped
    log.supervisor_gone
    log.hook_failed(:boot, RuntimeError.new("no"))
  end
end
