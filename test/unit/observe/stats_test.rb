# frozen_string_literal: true

require "test_helper"

class StatsTest < Minitest::Test
  FakeEngine = Struct.new(:stats)
  FakeBoard = Struct.new(:stats)

  def test_it_holds_the_figures_of_the_engines_that_run_and_no_others
    engine = FakeEngine.new({ requests: 7 })
    Fairlead::Stats.add(engine, nil)

    assert_includes Fairlead.stats[:engines], { requests: 7 }
    Fairlead::Stats.remove(engine)

    refute_includes Fairlead.stats[:engines], { requests: 7 }
  end

  def test_the_histograms_of_all_engines_add_up
    histograms = [1, 2].map { |number| { count: number, seconds: number / 2.0, buckets: { 0.1 => number, 0.2 => number } } }
    engines = histograms.map { |histogram| FakeEngine.new({ requests: 7, lock_wait: histogram }) }
    engines.each { |engine| Fairlead::Stats.add(engine, nil) }

    assert_equal({ lock_wait: { count: 3, seconds: 1.5, buckets: { 0.1 => 3, 0.2 => 3 } } }, Fairlead.stats[:waits])
  ensure
    engines.each { |engine| Fairlead::Stats.remove(engine) }
  end

  def test_without_an_engine_there_are_no_histograms
    assert_empty Fairlead.stats[:waits]
  end

  def test_without_workers_there_is_no_room
    refute_includes Fairlead.stats, :room
  end

  def test_the_board_tells_of_the_room_and_of_all_workers
    board = FakeBoard.new({ room: { waiting: 1 }, workers: [{ slot: 0 }], waits: { lock_wait: {} } })
    Fairlead::Stats.add(FakeEngine.new({}), board)

    assert_equal({ waiting: 1 }, Fairlead.stats[:room])
    assert_equal [{ slot: 0 }], Fairlead.stats[:workers]
    assert_equal({ lock_wait: {} }, Fairlead.stats[:waits])
  ensure
    Fairlead::Stats.instance_variable_set(:@shared, nil)
    Fairlead::Stats.instance_variable_get(:@engines).clear
  end
end
