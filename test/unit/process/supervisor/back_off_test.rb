# frozen_string_literal: true

require "test_helper"

class BackOffTest < Minitest::Test
  def setup
    @now = 100.0
    @back_off = Fairlead::Supervisor::BackOff.new { @now }
  end

  def test_it_can_be_forgiven
    3.times { @back_off.fail }
    @back_off.forgive

    assert_nil @back_off.remaining
    assert_equal 0, @back_off.fail
  end

  def test_the_first_replacement_comes_at_once
    assert_nil @back_off.remaining
    assert_equal 0, @back_off.fail
    assert_nil @back_off.remaining
  end

  def test_the_pauses_double_up_to_a_limit
    assert_equal [0, 1, 2, 4, 8, 16, 30, 30], Array.new(8) { @back_off.fail }
  end

  def test_a_pause_passes
    3.times { @back_off.fail }
    @now += 1.5

    assert_in_delta 0.5, @back_off.remaining
    @now += 0.5
    assert_nil @back_off.remaining
  end

  def test_a_worker_that_takes_minutes_to_fail_is_not_forgotten_meanwhile
    delays = Array.new(4) do
      started_at = @now
      @now += 120
      @back_off.fail(started_at)
    end

    assert_equal [0, 1, 2, 4], delays
  end

  def test_what_lies_a_minute_back_is_forgotten
    4.times { @back_off.fail }
    @now += 60.5

    assert_equal 0, @back_off.fail
    assert_equal 1, @back_off.fail
  end
end
