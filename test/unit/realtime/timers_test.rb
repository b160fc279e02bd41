# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_native"

class TimersTest < Minitest::Test
  include Fairlead::Test::Waiting

  # Too long to happen in a test.
  NEVER = 3600

  # Short enough to wait for; an exact Float.
  TICK = 1 / 1024.0

  def setup
    @native = Fairlead::Test::FakeNative.new
    @background = Fairlead::Background.new(native: @native)
    @timers = @background.timers
    @errors = StringIO.new
    @seen = Thread::Queue.new
  end

  def teardown
    @timers.stop
    @background.stopped(:engine)
    @native.end
  end

  def test_a_timer_runs_once_and_is_over
    start
    timer = @timers.after(0.01, -> { @seen << timer.active? })

    assert_equal true, pop
    wait_until("its end") { !timer.active? }
    refute timer.cancel
  end

  def test_timers_run_in_the_order_of_their_times
    start_with_clock
    { late: 60, soon: 20, between: 40 }.each { |name, ticks| @timers.after(ticks * TICK, -> { @seen << name }) }
    @time = 60 * TICK

    assert_equal %i[soon between late], runs_until_now
  end

  def test_those_of_the_same_length_run_in_the_order_in_which_they_were_set
    20.times { |number| @timers.after(0.01, -> { @seen << number }) }
    start

    assert_equal [*0...20], (Array.new(20) { pop })
  end

  def test_the_time_of_one_that_is_set_before_the_start_counts_from_the_start
    timer = @timers.after(0.1, -> { @seen << monotonic })
    begun = monotonic
    wait_until("more time than the block needs") { monotonic - begun > 0.15 }
    assert_predicate timer, :active?

    started = monotonic
    start
    assert_operator pop - started, :>=, 0.1
  end

  def test_repetitions_are_counted
    start
    timer = @timers.every(0.005, 3, -> { @seen << :beat })
    3.times { pop }
    wait_until("its end") { !timer.active? }
    @timers.after(0.05, -> { @seen << :later })

    assert_equal :later, pop
  end

  def test_without_repetitions_it_runs_until_it_is_cancelled
    start
    timer = @timers.every(0.001, nil, -> { @seen << :beat })
    10.times { pop }
    assert timer.cancel
    refute_predicate timer, :active?
    @seen.clear
    @timers.after(0.05, -> { @seen << :later })

    assert_operator 2.times.take_while { pop != :later }.size, :<=, 1, "more than the run that had begun"
  end

  def test_one_that_is_cancelled_before_the_start_never_runs
    assert @timers.after(0, -> { @seen << :cancelled }).cancel
    start
    @timers.after(0.01, -> { @seen << :other })

    assert_equal :other, pop
  end

  def test_it_can_cancel_itself_and_set_others
    start
    timer = @timers.every(0.005, nil, lambda {
      timer.cancel
      @timers.after(0.05, -> { @seen << :second })
      @seen << :first
    })

    assert_equal %i[first second], [pop, pop]
    assert_empty @seen
  end

  def test_what_was_missed_is_not_made_up_for_and_the_next_beat_is_on_the_grid
    start_with_clock
    @timers.every(16 * TICK, nil, -> { @seen << (@time / TICK) })
    seen = [15, 16, 47, 48, 91, 95, 96].map do |ticks|
      @time = ticks * TICK
      runs_until_now
    end

    assert_equal [[], [16], [47], [48], [91], [], [96]], seen
  end

  def test_a_beat_that_comes_while_the_last_run_goes_on_is_left_out
    start_with_clock
    timer = @timers.every(16 * TICK, 2, -> { @seen << (@time / TICK) })
    held = hold_next(timer)
    @time = 16 * TICK
    assert_empty runs_until_now
    @time = 32 * TICK
    assert_empty runs_until_now
    held.pop.call
    assert_equal [32], runs_until_now

    assert_predicate timer, :active?
    @time = 48 * TICK
    assert_equal [48], runs_until_now
    wait_until("its end") { !timer.active? }
  end

  def test_exceptions_are_logged_and_the_timer_goes_on
    start
    @timers.every(0.001, 2, lambda {
      @seen << :beat
      raise "no database"
    })
    2.times { pop }

    wait_until("both lines") { @errors.string.scan(/^a timer failed: .*no database \(RuntimeError\)/).size == 2 }
  end

  def test_when_the_server_ends_nothing_runs_any_more_and_the_thread_ends
    before = Thread.list
    start
    timer = @timers.every(0.001, nil, -> { @seen << :beat })
    pop
    @background.stopped(:engine)
    refute_predicate timer, :active?
    wait_until("the end of the thread") { Thread.list.none? { |thread| thread.name == "fairlead timers" && !before.include?(thread) } }
    @native.end
    @seen.clear

    assert_nil timer.call
    assert_empty @seen
  end

  def test_there_is_no_thread_before_a_timer_needs_one
    before = Thread.list
    @timers.after(NEVER, -> {})
    assert_empty Thread.list - before

    start
    assert_equal 1, (Thread.list - before).count { |thread| thread.name == "fairlead timers" }
  end

  def test_prepare_starts_the_thread_while_a_server_serves
    before = Thread.list
    @timers.prepare
    assert_empty Thread.list - before
    start
    2.times { @timers.prepare }

    assert_equal 1, (Thread.list - before).count { |thread| thread.name == "fairlead timers" }
  end

  def test_timers_go_on_after_the_application_has_killed_their_thread
    start
    before = Thread.list.select { |thread| thread.name == "fairlead timers" }
    @timers.every(0.01, nil, -> { @seen << true })
    pop
    (Thread.list.select { |thread| thread.name == "fairlead timers" } - before).each(&:kill).each(&:join)
    @seen.clear

    assert_equal true, pop
  end

  def test_cancelled_ones_are_not_kept
    start
    objects = ObjectSpace::WeakMap.new
    100.times { cancelled_timer(objects) }

    wait_until("the collection of most") do
      GC.start
      objects.size < 50
    end
  end

  def test_cancelling_one_costs_the_same_however_many_there_are
    start
    assert_operator cost_of_cancelling(20_000) / cost_of_cancelling(2_000), :<, 40 # 100 if each one searches all others
  end

  def test_cancelling_one_that_waits_for_the_start_costs_the_same_however_many_there_are
    assert_operator cost_of_cancelling(20_000) / cost_of_cancelling(2_000), :<, 40
  end

  def test_those_that_are_left_run_in_order_when_most_are_cancelled
    start_with_clock
    timers = Array.new(1000) { |number| @timers.after(((number * 7) % 1000) * TICK, -> { @seen << ((number * 7) % 1000) }) }
    timers.each_with_index { |timer, number| timer.cancel unless (number % 10).zero? }
    @time = 1000 * TICK

    assert_equal Array.new(100) { |number| number * 10 }, runs_until_now
  end

  def test_an_exception_in_the_thread_is_logged_and_stops_no_other_timer
    start
    failures = 1
    original = @native.method(:defer)
    @native.define_singleton_method(:defer) { |job| (failures -= 1).negative? ? original.call(job) : raise("no room") }
    @timers.after(0, -> { @seen << :lost })
    @timers.after(0.01, -> { @seen << :other })

    assert_equal :other, pop
    assert_match(/a timer failed: .*no room/, @errors.string)
  end

  def test_a_time_of_any_length_stops_no_other_timer
    start
    [1e300, 1e20, 2**70].each { |seconds| @timers.after(seconds, -> {}) }
    @timers.every(1e300, nil, -> {})
    wait_until("the thread to wait") { Thread.list.any? { |thread| thread.name == "fairlead timers" && thread.status == "sleep" } }
    @timers.after(0, -> { @seen << :other })

    assert_equal :other, pop
    assert_empty @errors.string
  end

  def test_times_and_counts_that_make_no_sense_are_refused
    [-1, Float::NAN, Float::INFINITY].each { |seconds| assert_raises(ArgumentError) { @timers.after(seconds, -> {}) } }
    [0, -1, 1e-320, 0.0005, Float::NAN].each { |seconds| assert_raises(ArgumentError) { @timers.every(seconds, nil, -> {}) } }
    assert_raises(TypeError) { @timers.after(nil, -> {}) }
    assert_raises(ArgumentError) { @timers.every(1, -1, -> {}) }
    assert_raises(ArgumentError) { @timers.after(1, nil) }
  end

  private

  # Minimum of three runs, in CPU seconds of this thread, so that other processes do not count.
  def cost_of_cancelling(count)
    costs = Array.new(3) do
      timers = Array.new(count) { @timers.after(NEVER, -> {}) }.shuffle(random: Random.new(1))
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      timers.each(&:cancel)
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
    end
    costs.min
  end

  def start
    @native.run
    @background.started(:engine, Fairlead::EventLog.new(quiet: true, errors: @errors))
  end

  def pop
    wait_until("a run") { @seen.size.positive? }
    @seen.pop
  end

  # From here on, the clock shows @time, in seconds.
  def start_with_clock
    start
    @time = 0
    @timers = Fairlead::Timers.new(@background) { @time }.tap(&:start)
  end

  # Returns the queue that gets the timer instead of the engine, once.
  def hold_next(timer)
    held = Thread::Queue.new
    defer = @background.method(:defer)
    begun = false
    @background.define_singleton_method(:defer) { |job| job.equal?(timer) && !begun ? (held << job).then { begun = true } : defer.call(job) }
    held
  end

  # Returns the blocks that have run, once all due ones have.
  def runs_until_now
    @timers.after(0, -> { @seen << :now })
    runs = []
    runs << pop until runs.last == :now
    runs[0...-1]
  end

  def cancelled_timer(objects)
    object = Object.new
    objects[object] = object
    @timers.after(NEVER, -> { object }).cancel
  end
end
