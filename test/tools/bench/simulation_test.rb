# frozen_string_literal: true

require "test_helper"
require_relative "../../../bench/harness"

# The simulation behind docs/guides/fairness.md: consequences of its rules, without any measurement.
class SimulationTest < Minitest::Test
  Simulation = Bench::Simulation
  Kind = Simulation::Kind

  def setup
    @calendar = Simulation::Calendar.new
    @log = []
  end

  def test_what_is_planned_happens_in_order_of_time_then_of_planning
    random = Random.new(1)
    due = Array.new(200) { random.rand(20) }
    due.each_with_index { |time, index| @calendar.after(time) { @log << [time, index, @calendar.now] } }
    @calendar.run_until(20)

    assert_equal due.each_with_index.sort.map { |time, index| [time, index, time] }, @log
    assert_equal 20, @calendar.now
  end

  def test_what_is_due_at_the_end_does_not_happen
    @calendar.after(1) { @log << :before }
    @calendar.after(2) { @log << :at }
    @calendar.run_until(2)

    assert_equal [:before], @log
  end

  def test_threads_that_compute_share_the_lock_by_slices
    compute(lock(Simulation::Turns::Clock.new(0.005)), long: 0.02, other: 0.02, short: 0.001)

    assert_equal({ short: 11, long: 41, other: 41 }, ended)
  end

  def test_without_slices_the_lock_changes_hands_after_rubys_quantum
    compute(lock(Simulation::Turns::Ruby.new(0.1)), long: 0.15, short: 0.001)

    assert_equal({ short: 101, long: 151 }, ended)
  end

  def test_whoever_comes_in_between_gets_no_slice_of_its_own
    lock = lock(Simulation::Turns::Clock.new(0.005))
    compute(lock, long: 0.02)
    @calendar.after(0.003) { lock.compute(0.004) { note(:late) } }

    assert_equal({ late: 9, long: 24 }, ended)
  end

  def test_a_thread_that_computes_alone_is_not_disturbed
    turns = [Simulation::Turns::Clock.new(0.005), Simulation::Turns::Ruby.new(0.1)]
    turns.each { |kind| compute(lock(kind), kind => 10.0) }

    assert_equal turns.to_h { |kind| [kind, 10_000] }, ended
  end

  # The threads sleep all the time, and every client has the same number of requests before it.
  def test_one_queue_gives_every_client_the_same
    { "1x5:10" => 400, "4x2:16" => 400, "4x2:32" => 800 }.each do |shape, milliseconds|
      found = lag("fairlead", shape)

      assert_in_delta milliseconds, found.percentile(50), 2, shape
      assert_in_delta milliseconds, found.percentile(99), 5, shape
      assert_in_delta Bench::Shape.parse(shape).concurrency / 0.2, found.rate, 0.5, shape
    end
  end

  def test_who_stays_with_a_client_makes_the_others_wait_for_many_requests
    found = lag("puma", "1x5:10")

    assert_in_delta 200, found.percentile(50), 2
    assert_in_delta 2200, found.percentile(99), 10
  end

  def test_slices_are_for_those_that_wait_beside_one_that_computes
    kinds = [Kind.new("waiting", 4, [[:sleep, 0.002], [:compute, 0.0005]] * 4), Kind.new("computing", 1, [[:compute, 0.15]])]
    with, without = %w[fairlead fairlead-no-slices].map { |server| predict(server, "1x5:5", kinds, seconds: 4) }

    assert_operator with["waiting"].rate, :>, 8 * without["waiting"].rate
    assert_operator with["computing"].rate, :>, 0.6 * without["computing"].rate
  end

  def test_slices_change_nothing_where_nothing_computes
    kinds = [Kind.new("short", 9, [[:sleep, 0.005]]), Kind.new("long", 3, [[:sleep, 0.3]])]
    with, without = %w[fairlead fairlead-no-slices].map { |server| predict(server, "1x5:12", kinds, seconds: 1) }

    assert_equal(*[with, without].map { |found| found.values.map { |prediction| [prediction.rate, prediction.percentile(99)] } })
  end

  # As in the load tool, requests in progress at the end do not count.
  def test_only_what_begins_and_ends_while_it_is_counted_counts
    found = predict("fairlead", "1x1:1", [Kind.new("slow", 1, [[:sleep, 0.3]])], seconds: 1)["slow"]

    assert_in_delta 2, found.rate, 0.001
  end

  def test_a_server_without_a_model_is_not_predicted
    assert_nil predict("webrick", "1x1:1", [Kind.new("slow", 1, [[:sleep, 0.3]])], seconds: 1)
  end

  def test_a_prediction_is_the_median_of_its_runs
    prediction = Simulation::Prediction.new([[[0.003, 0.001, 0.002], 1.0], [[0.005], 2.0], [[], 1.0]])

    assert_equal [0.5, 3.5, 4.0], [prediction.rate, prediction.percentile(50), prediction.percentile(99)]
    assert_equal({ 0 => 3.0, 50 => 3.0 }, Simulation::Prediction.new([[[0.003, 0.004], 1.0]]).curve([0, 50, 99]))
    assert_nil Simulation::Prediction.new([[[], 1.0]]).percentile(99)
  end

  private

  def lock(turns)
    Simulation::Lock.new(@calendar, turns, Random.new(1))
  end

  def compute(lock, works)
    works.each { |name, seconds| lock.compute(seconds) { note(name) } }
  end

  def note(name)
    @log << [name, (@calendar.now * 1000).round]
  end

  # Name => milliseconds, in the order of their ends.
  def ended
    @calendar.run_until(60)
    @log.to_h
  end

  def lag(server, shape)
    shape = Bench::Shape.parse(shape)
    extent = Simulation::Extent.new(lead: 0, requests: 20 * shape.connections)
    Simulation.predict(server, shape, [Kind.new("lag", shape.connections, [[:sleep, 0.2]])], extent)["lag"]
  end

  def predict(server, shape, kinds, seconds:)
    Simulation.predict(server, Bench::Shape.parse(shape), kinds, Simulation::Extent.new(lead: 0.5, seconds: seconds))
  end
end
