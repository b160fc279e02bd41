# frozen_string_literal: true

require "test_helper"
require "stringio"

class HooksTest < Minitest::Test
  def setup
    @errors = StringIO.new
    @log = Fairlead::EventLog.new(errors: @errors)
    @hooks = Fairlead::Hooks.new
    @seen = []
  end

  def test_blocks_run_in_the_order_they_were_given
    @hooks.add(:before_worker_boot, ->(index) { @seen << [:first, index] })
    @hooks.add(:on_worker_boot, proc { @seen << [:second] })
    @hooks.run(:before_worker_boot, 3, log: @log)

    assert_equal [[:first, 3], [:second]], @seen
  end

  def test_a_lambda_need_not_take_the_argument
    @hooks.add(:before_restart, -> { @seen << :lambda })
    @hooks.add(:before_restart, method(:seen))
    @hooks.run(:before_restart, :launcher, log: @log)

    assert_equal %i[lambda launcher], @seen
    assert_empty @errors.string
  end

  def seen(object) = @seen << object

  def test_one_that_raises_is_logged_and_the_next_one_runs
    @hooks.add(:before_fork, -> { raise "no database" })
    @hooks.add(:before_fork, -> { require "nowhere/at/all" })
    @hooks.add(:before_fork, -> { @seen << :third })
    @hooks.run(:before_fork, log: @log)

    assert_equal [:third], @seen
    assert_match(/^before_fork failed: .*hooks_test\.rb:\d+:.*no database \(RuntimeError\)/, @errors.string)
    assert_match(/LoadError/, @errors.string)
  end

  def test_a_name_without_blocks_does_nothing_also_when_frozen
    @hooks.freeze.run(:before_fork, log: @log)

    assert_empty @errors.string
    assert_empty @hooks.names
  end

  def test_another_name_is_one_of_a_hook
    assert_empty Fairlead::Hooks::ALIASES.values - Fairlead::Hooks::NAMES.keys
    assert_empty Fairlead::Hooks::WITH_WORKERS - Fairlead::Hooks::NAMES.keys
    assert_empty Fairlead::Hooks::EVENT_ALIASES.values - Fairlead::Hooks::NAMES.keys
  end

  def test_those_of_the_process_run_after_those_of_the_configuration
    hooks = Fairlead::Hooks.new(followed_by: @hooks)
    @hooks.add(:on_worker_boot, ->(index) { @seen << [:process, index] })
    hooks.add(:before_worker_boot, ->(index) { @seen << [:configuration, index] })
    hooks.freeze.run(:before_worker_boot, 1, log: @log)
    @hooks.add(:boot, -> { @seen << :late })
    hooks.run(:boot, log: @log)

    assert_equal [[:configuration, 1], [:process, 1], :late], @seen
    assert_equal [:before_worker_boot], hooks.names
  end

  def test_one_that_is_added_while_they_run_runs_the_next_time
    @hooks.add(:boot, -> { @hooks.add(:boot, -> { @seen << :second }) })
    @hooks.run(:boot, log: @log)
    assert_empty @seen

    @hooks.run(:boot, log: @log)
    assert_equal [:second], @seen
  end

  def test_an_event_that_does_not_exist_is_refused_with_the_names_of_those_that_do
    error = assert_raises(ArgumentError) { Fairlead.on(:bot) { nil } }

    %w[bot boot shutdown stopped fork before_fork before_worker_boot].each { |name| assert_match(/\b#{name}\b/, error.message) }
    assert_raises(ArgumentError) { Fairlead.on(:boot) }
  end
end
