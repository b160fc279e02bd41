# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_native"

# Timers at the end of their engine, and timers of copies of its process.
class LingeringTimersTest < Minitest::Test
  include Fairlead::Test::Waiting

  # Too long to happen in a test.
  NEVER = 3600

  def setup
    @native = Fairlead::Test::FakeNative.new
    @background = Fairlead::Background.new(native: @native)
    @timers = @background.timers
    @seen = Thread::Queue.new
  end

  def teardown
    @background.stopped(:engine)
    @native.end
  end

  def test_timers_that_run_once_run_after_the_last_request
    start
    @background.draining(:engine, patient: true)
    kept = @timers.after(0.05, -> { @seen << :kept })
    others = [@timers.after(NEVER, -> {}), @timers.every(0.02, nil, -> { @seen << :again })]
    @native.end
    @timers.linger(60)
    assert_predicate @timers, :linger?
    @seen.clear

    assert_equal :kept, pop
    wait_until("the end") { !@timers.linger? }
    refute([kept, *others, @timers.after(NEVER, -> {}), @timers.every(1, nil, -> {})].any?(&:active?))
    assert_empty @seen
  end

  # The engine may have ended before it has run them.
  def test_a_block_that_was_due_runs_once_after_the_last_request
    start
    jobs = Thread::Queue.new
    @background.define_singleton_method(:defer) { |job| jobs << job }
    @timers.after(0, -> { @seen << :run })
    job = jobs.pop
    @timers.linger(60)

    assert_equal :run, pop
    job.call
    assert_empty @seen
  end

  # A job of the application may defer one when no request is left.
  def test_a_block_that_is_deferred_after_the_last_request_runs
    start
    @background.draining(:engine, patient: true)
    @native.define_singleton_method(:defer) { |_| true } # the engine has ended, and drops it
    @timers.linger(60)
    @background.defer(-> { @background.defer(-> { @seen << :run }) })

    assert_predicate @timers, :linger?
    assert_equal :run, pop
    wait_until("the end") { !@timers.linger? }
  end

  def test_a_timer_of_a_copy_runs_if_its_last_run_was_never_begun
    @timers.every(0.01, nil, -> { @seen << :beat })
    jobs = Thread::Queue.new
    @background.define_singleton_method(:defer) { |job| jobs << job }
    start
    jobs.pop
    @background.stopped(:engine)
    @background.renew
    start
    jobs.pop.call

    assert_equal :beat, pop
  end

  private

  def start
    @native.run
    @background.started(:engine, Fairlead::EventLog.new(quiet: true, errors: StringIO.new))
  end

  def pop
    wait_until("a run") { @seen.size.positive? }
    @seen.pop
  end
end
