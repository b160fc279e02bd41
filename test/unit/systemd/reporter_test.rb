# frozen_string_literal: true

require "test_helper"
require "support/fake_server"

class SystemdReporterTest < Minitest::Test
  # Notes what systemd is told.
  class Told
    attr_reader :words, :watchdog

    def initialize(watchdog)
      @words = []
      @watchdog = watchdog
    end

    %i[ready reloading stopping status alive close].each { |name| define_method(name) { |*arguments| @words << [name, *arguments] } }
  end

  def setup
    @server = Fairlead::Test::FakeServer.new(workers: 2, state: :starting)
    @pulse = Fairlead::Control::Pulse.new(@server)
  end

  def reporter(watchdog: nil)
    counts = { engines: [], workers: Array.new(2) { { busy_threads: 1, threads: 3, queued: 4 } } }
    @told = Told.new(watchdog)
    @reporter = Fairlead::Systemd::Reporter.new(@told, @pulse, counts: -> { counts })
  end

  # What is told of these states, one after the other, but for texts.
  def events(*states)
    states.each do |state|
      state.is_a?(Hash) ? @server.change(**state) : @server.change(state: state)
      @reporter.look(@server.status)
    end
    @told.words.map(&:first) - [:status]
  end

  def restart(at, state = :done) = { state: :ready, restart: { kind: :phased, state: state, error: nil, at: Time.at(at) } }

  def test_each_state_is_told_once
    reporter

    assert_equal %i[ready reloading ready stopping], events(:starting, :ready, :ready, :restarting, :restarting, :ready, :draining, :draining)
  end

  def test_a_restart_between_two_looks_is_told
    reporter

    assert_equal %i[ready reloading ready reloading ready], events(:ready, restart(1), restart(1), restart(2))
  end

  def test_a_new_program_ends_the_restart_that_the_old_one_has_begun
    reporter

    assert_equal %i[reloading ready], events(restart(1).merge(state: :restarting), restart(1))
  end

  def test_an_end_that_came_between_two_looks_is_told
    reporter
    events(:ready)
    @reporter.ended

    assert_equal %i[ready stopping close], events(:draining)
  end

  def test_the_text_says_how_it_is_and_is_sent_when_it_changes
    reporter
    events(:ready, :ready)
    @server.change(restart: { kind: :phased, state: :failed, error: "config.ru:1: no\nmore", at: Time.at(0) })
    events(:ready)
    text = "ready: 2/2 workers, 2/6 threads busy, 8 requests waiting"

    assert_equal [text, "#{text}; last restart failed: config.ru:1: no"], (@told.words.filter_map { |name, words| words if name == :status })
  end

  def test_the_watchdog_hears_nothing_of_a_main_loop_that_hangs
    reporter(watchdog: 0.01)
    @pulse.check
    events(:ready)

    assert_equal 1, @told.words.count([:alive])
    @server.turns = false
    @pulse.check
    @pulse.define_singleton_method(:silent_for) { 0.006 }
    events(:ready)

    assert_equal 1, @told.words.count([:alive])
  end

  def test_it_looks_twice_in_the_time_of_the_watchdog
    assert_in_delta 0.2, reporter(watchdog: 0.4).interval
    assert_in_delta 1, reporter(watchdog: 60).interval
    assert_in_delta 1, reporter.interval
  end
end
