# frozen_string_literal: true

require "test_helper"

class TlsSettlingTest < Minitest::Test
  def setup
    @settling = Fairlead::Tls::Settling.new(:first)
    @settling.interval = 5
  end

  def test_files_that_have_changed_are_read_when_they_rest
    assert_equal 5, @settling.pause(0)
    refute @settling.due?(:first, 0)
    refute @settling.due?(:second, 5)
    assert_equal 1, @settling.pause(5)
    refute @settling.due?(:third, 6)
    assert @settling.due?(:third, 7)
    @settling.tried(:third, 7, failed: false)
    refute @settling.due?(:third, 8)
    assert_equal 5, @settling.pause(8)
  end

  def test_looks_that_take_long_are_further_apart
    pauses = [0.001, 0.05, 0.12, 7].map do |cost|
      @settling.looked(cost)
      @settling.pause(0)
    end

    assert_equal [5, 5, 12, 60], pauses.map(&:round)
    @settling.due?(:second, 5)
    assert_equal 1, @settling.pause(5), "after a change"
  end

  def test_files_that_never_rest_are_read_after_ten_seconds_each_time
    read = (0..30).select do |second|
      @settling.due?(second, second).tap { |due| @settling.tried(second, second, failed: false) if due }
    end

    assert_equal [10, 21], read
  end

  def test_what_has_failed_is_tried_again_less_and_less_often
    now = 0
    pauses = Array.new(8) do
      @settling.tried(:second, now, failed: true)
      @settling.interval = 0
      pause = @settling.pause(now)
      refute @settling.due?(:second, now + pause - 0.5)
      assert @settling.due?(:second, now += pause)
      pause
    end

    assert_equal [1, 2, 4, 8, 16, 32, 60, 60], pauses
    @settling.tried(:second, now, failed: false)
    assert_nil @settling.pause(now)
  end

  def test_a_change_after_a_failure_is_read_when_it_rests
    4.times { @settling.tried(:second, 0, failed: true) }
    refute @settling.due?(:third, 1)
    assert @settling.due?(:third, 2)
  end
end
