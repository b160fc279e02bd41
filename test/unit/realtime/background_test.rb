# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_native"

class BackgroundTest < Minitest::Test
  include Fairlead::Test::Waiting

  def setup
    @native = Fairlead::Test::FakeNative.new
    @background = Fairlead::Background.new(native: @native)
    @log = Fairlead::EventLog.new(quiet: true, errors: StringIO.new)
    @seen = Thread::Queue.new
  end

  def teardown
    @native.end
  end

  def test_what_is_deferred_before_an_engine_runs_waits_for_it_and_keeps_its_order
    3.times { |number| @background.defer(-> { @seen << number }) }
    assert_empty @seen

    start
    @background.defer(-> { @seen << 3 })

    assert_equal [0, 1, 2, 3], (Array.new(4) { pop })
  end

  def test_what_waits_is_run_once
    @background.defer(-> { @seen << :once })
    start(:first)
    start(:second)
    @background.defer(-> { @seen << :last })

    assert_equal %i[once last], [pop, pop]
  end

  def test_a_fork_inherits_what_waits_and_leaves_it_to_its_parent_too
    @background.defer(-> { @seen << Process.pid })
    child = in_fork do
      start
      pop
    end
    start

    assert_equal Process.pid, pop
    assert_match(/\A\d+\z/, child)
    refute_equal Process.pid.to_s, child
  end

  def test_timers_end_when_the_last_engine_begins_to_drain
    %i[first second].each { |engine| start(engine) }
    timer = @background.timers.after(3600, -> {})
    @background.draining(:first)
    assert_predicate timer, :active?

    @background.draining(:second)
    refute_predicate timer, :active?
  end

  def test_engines_that_a_fork_has_inherited_do_not_keep_its_timers_alive
    start
    active = in_fork do
      @native = @background.instance_variable_set(:@native, Fairlead::Test::FakeNative.new)
      start(:own)
      timer = @background.timers.after(3600, -> {})
      @background.draining(:own)
      timer.active?
    end

    assert_equal "false", active
  end

  def test_the_log_is_that_of_the_server_and_before_there_is_one_it_exists_nevertheless
    assert_kind_of Fairlead::EventLog, @background.log
    start

    assert_same @log, @background.log
  end

  private

  def start(engine = :engine)
    @native.run unless @native.running?
    @background.started(engine, @log)
  end

  def pop
    wait_until("a job") { @seen.size.positive? }
    @seen.pop
  end

  # Returns the result of the block in a child process, as a String.
  def in_fork
    reader, writer = IO.pipe
    pid = fork do
      writer.write(yield)
      writer.close
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    reader.close
    Process.wait(pid)
  end
end
