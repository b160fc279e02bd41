# frozen_string_literal: true

require "test_helper"

class RunningTimeTest < Minitest::Test
  Limit = Fairlead::RunningTime::Limit

  def setup
    @time = 1000.0
    @used = 5.0
    @clock = Fairlead::RunningTime.new(used: -> { @used }) { @time }
  end

  def test_time_between_two_looks_counts
    look_after(0.9)
    look_after(1.2)

    assert_in_delta 1002.1, @clock.now
    assert_in_delta 2.0, @clock.counted(2.0)
  end

  def test_of_a_pause_only_the_usual_time_between_two_looks_counts
    look_after(1.0)
    look_after(60.0)

    assert_in_delta 1002.0, @clock.now
  end

  def test_time_in_which_the_process_has_computed_counts_though_a_look_is_late
    @used += 2.5
    look_after(3.0)

    assert_in_delta 1003.0, @clock.now
    @used += 0.5
    look_after(60.0)

    assert_in_delta 1004.5, @clock.now
  end

  def test_what_happened_before_in_and_after_a_pause_has_its_age_in_running_time
    look_after(1.0)
    look_after(60.0) # 59 s of pause
    look_after(1.0)

    assert_in_delta 3.0, @clock.counted(62.0)
    assert_in_delta 2.0, @clock.counted(61.0)
    assert_in_delta 1.0, @clock.counted(31.0)
    assert_in_delta 0.5, @clock.counted(0.5)
  end

  def test_a_pause_since_the_last_look_does_not_count_either
    look_after(1.0)
    @time += 60

    assert_in_delta 0.5, @clock.counted(60.5)
    assert_in_delta 1001.0, @clock.now
  end

  def test_many_pauses_are_not_kept_for_ever
    memory = Fairlead::RunningTime::MEMORY
    (memory + 10).times { look_after(2.0) }

    assert_in_delta memory + 20, @clock.counted((memory + 10) * 2)
  end

  def test_a_limit_is_reached_by_steps_and_what_is_done_ends_it
    steps = []

    refute(Limit.new(0.03).wait { |seconds| steps << seconds && sleep(seconds) && nil })
    assert_in_delta 0.03, steps.sum, 0.01
    assert_equal :done, (Limit.new(30).wait { :done })
  end

  def test_without_a_limit_the_wait_has_no_steps_and_with_zero_it_asks_once
    asked = []
    Limit.new(nil).wait { |seconds| asked << seconds && true }
    Limit.new(0).wait { |seconds| asked << seconds && nil }

    assert_equal [nil, 0], asked
  end

  def test_a_limit_can_be_shortened_meanwhile
    [3600, nil].each do |seconds|
      limit = Limit.new(seconds)
      asked = []
      limit.wait { asked << limit.shorten(asked.any? ? 0 : 1800) && nil }

      assert_equal 2, asked.size
    end
    limit = Limit.new(0)
    limit.shorten(5)

    refute(limit.wait { false }, "it gets no longer")
  end

  private

  def look_after(seconds)
    @time += seconds
    @clock.look(1.0)
  end
end
