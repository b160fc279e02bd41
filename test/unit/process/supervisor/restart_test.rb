# frozen_string_literal: true

require "test_helper"

# The steps of a restart, on workers that are only written down.
class RestartTest < Minitest::Test
  # A worker: booted and ending are set by the test.
  Worker = Struct.new(:index, :generation, :booted, :ending) do
    def booted? = booted
    def ending? = ending
  end

  Target = Struct.new(:number, :ready) do
    def ready? = ready
  end

  # Notes what a restart wants.
  class Workforce
    attr_reader :children
    attr_accessor :room

    def initialize(count)
      @children = Array.new(count) { |index| Worker.new(index, 1, true, false) }
      @count = count
      @room = true
    end

    def terminate(child) = child.ending = true

    def start_worker(index, target)
      return false unless @room

      @children << Worker.new(index, target.number, false, false)
    end

    def complete? = (0...@count).all? { |index| @children.any? { |child| child.index == index && child.booted? && !child.ending? } }

    # What happens by itself: workers boot, and those that are to end do.
    def settle
      @children.each { |child| child.booted = true }
      @children.reject!(&:ending?)
    end

    def shape = @children.map { |child| [child.index, child.generation] }.sort
  end

  def setup
    @workforce = Workforce.new(3)
    @target = Target.new(2, true)
    @restart = Fairlead::Supervisor::Restart.new(:phased, @workforce, target: @target)
  end

  def test_nothing_happens_before_the_new_code_is_loaded
    @target.ready = false

    refute @restart.advance
    assert_predicate @restart, :loading?
    assert_equal 3, @workforce.children.size
  end

  def test_one_worker_is_replaced_at_a_time_and_none_is_ended_before_its_successor_serves
    least = most = 3
    until @restart.advance
      serving = @workforce.children.count { |child| child.booted? && !child.ending? }
      least = [least, serving].min
      most = [most, @workforce.children.size].max
      @workforce.settle if rand < 0.3
    end

    assert_equal [3, 4, :done], [least, most, @restart.state]
    assert_equal [[0, 2], [1, 2], [2, 2]], @workforce.shape
  end

  def test_where_there_is_no_room_the_old_one_goes_first
    @workforce.room = false
    @restart.advance

    assert_equal [true, false, false], @workforce.children.map(&:ending?)
  end

  def test_it_waits_for_a_worker_that_is_missing
    @workforce.children.map! { |child| child.generation = 2 and child }
    lost = @workforce.children.pop
    refute @restart.advance
    @workforce.children << lost

    assert @restart.advance
  end

  def test_a_new_worker_may_die_once_while_it_starts
    @restart.worker_died("killed by SIGKILL")
    assert_predicate @restart, :running?
    @restart.worker_died("killed by SIGKILL")

    assert_equal [:failed, "killed by SIGKILL"], @restart.to_h.values_at(:state, :error)
  end
end
