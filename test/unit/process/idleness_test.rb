# frozen_string_literal: true

require "test_helper"

class IdlenessTest < Minitest::Test
  QUIET = { requests: 7, refused_requests: 0, events: 0, queued: 0, busy_threads: 0, clients: 0 }.freeze

  # A clock that the test sets.
  class Idleness < Fairlead::Idleness
    attr_writer :time

    private

    def now = @time || 0.0
  end

  def setup
    @engines = [QUIET.dup, QUIET.dup]
    @idleness = Idleness.new(10) { @engines }
    refute_predicate @idleness, :over?
  end

  def test_it_is_over_when_nothing_has_changed_for_the_time
    refute over_at?(9.9)
    assert over_at?(10)
  end

  def test_whatever_is_done_begins_the_time_anew
    %i[requests refused_requests events].each_with_index do |name, index|
      @engines.last[name] += 1
      refute over_at?((index * 10) + 9)
      refute over_at?((index * 10) + 18)
    end
    assert over_at?(39)
  end

  def test_as_long_as_there_is_something_to_do_it_is_not_over
    %i[queued busy_threads clients].each do |name|
      @engines.first[name] = 1
      refute over_at?(1000), name
      @engines.first[name] = 0
      refute over_at?(1009), name
      assert over_at?(1010), name
      @idleness.time = 0.0
      setup
    end
  end

  def test_it_looks_often_enough
    assert_in_delta 1.0, @idleness.pause
    assert_in_delta 0.05, Fairlead::Idleness.new(0.2) { [] }.pause
  end

  private

  def over_at?(time)
    @idleness.time = time
    @idleness.over?
  end
end
