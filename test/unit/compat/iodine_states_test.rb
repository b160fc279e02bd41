# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/apart"

class IodineStatesTest < Minitest::Test
  include Fairlead::Test::Apart

  Launched = Struct.new(:pid, :workers) do
    def configuration = self
    def supervised? = workers.positive?
    def max_threads = 7
    def stop = :asked
  end

  def setup
    require "fairlead/compat/iodine"
    @errors = StringIO.new
    @seen = []
  end

  def test_without_workers_a_process_is_everything
    [nil, Launched.new(Process.pid, 0)].each do |launcher|
      Fairlead::Launcher.current = launcher

      assert_equal [true, true, false], [Iodine.master?, Iodine.worker?, Iodine.running?]
    end
  end

  def test_with_workers_a_process_is_one_of_two
    Fairlead::Launcher.current = Launched.new(Process.pid, 2)
    assert_equal [true, false], [Iodine.master?, Iodine.worker?]

    Fairlead::Launcher.current = Launched.new(Process.ppid, 2)
    assert_equal [false, true], [Iodine.master?, Iodine.worker?]
  end

  def test_the_root_process_runs_from_its_first_fork_on
    Fairlead::Launcher.current = Launched.new(Process.pid, 2)
    reach(:before_fork)

    assert_predicate Iodine, :running?
  end

  def test_each_state_has_its_moment
    every_state
    moments = {
      before_worker_fork: [:before_fork], after_worker_fork: %i[after_fork enter_master], before_worker_boot: %i[after_fork enter_child],
      boot: %i[on_start pre_start], worker_lost: [:on_child_crush], supervisor_lost: [:on_parent_crush], shutdown: [:start_shutdown],
      stopped: [:on_finish], after_stopped: []
    }
    moments.each do |event, states|
      @seen.clear
      reach(event, 3)

      assert_equal states, @seen.sort, event
    end
    assert_empty @errors.string
  end

  def test_before_the_start_means_before_the_fork_where_there_is_one
    every_state
    reach(:before_fork)

    assert_equal [:pre_start], @seen

    reach(:boot)

    assert_equal %i[pre_start on_start], @seen
  end

  def test_the_supervisor_finishes_too
    every_state
    Fairlead::Launcher.current = Launched.new(Process.pid, 2)
    reach(:after_stopped)

    assert_equal [:on_finish], @seen
  end

  def test_a_worker_that_loads_the_application_itself_has_been_forked
    Fairlead::Launcher.current = Launched.new(Process.ppid, 2)
    Iodine.on_state(:enter_child) { @seen << :enter_child }
    Iodine.after_fork { @seen << :after_fork }
    reach(:boot)

    assert_equal %i[enter_child after_fork], @seen
  end

  def test_the_block_comes_back_and_gets_nothing
    block = -> { @seen << :called }

    assert_same block, Iodine.on_state(:before_fork, &block)
    reach(:before_worker_fork, 0)

    assert_equal [:called], @seen
    assert_empty @errors.string
  end

  def test_unknown_states_are_refused
    [:start, "on_start", nil].each { |state| assert_raises(TypeError) { Iodine.on_state(state) { nil } } }
  end

  def test_older_names_and_helpers_mean_states
    Iodine.before_fork { @seen << 1 }
    before_fork { @seen << 2 }
    on_worker_boot { |_index| @seen << 3 }
    Iodine.on_shutdown { @seen << 4 }
    %i[before_worker_fork before_worker_boot stopped].each { |event| reach(event, 0) }

    assert_equal [1, 2, 3, 4], @seen
  end

  def test_settings_of_a_program_become_options
    Iodine.workers = 3
    Iodine.threads = 4
    Iodine.verbosity = 2

    assert_equal [3, 4, 2], [Iodine.workers, Iodine.threads, Iodine.verbosity]
    assert_equal({ workers: 3, max_threads: 4, quiet: true }, options)

    Iodine.workers = 1

    assert_equal 0, options[:workers]
    Iodine.workers = Iodine.threads = -Etc.nprocessors

    assert_equal({ workers: 0, max_threads: 1 }, options.slice(:workers, :max_threads))
  end

  def test_what_was_not_set_is_left_to_fairlead
    assert_equal({ quiet: false }, options)
  end

  def test_settings_that_make_no_sense_are_refused
    [[:workers=, 512], [:threads=, 4096], [:verbosity=, 6], [:verbosity=, -1]].each do |name, value|
      assert_raises(RangeError) { Iodine.public_send(name, value) }
    end
    assert_raises(TypeError) { Iodine.workers = "2" }
  end

  def test_settings_of_a_running_server_are_its_own
    Fairlead::Launcher.current = Launched.new(Process.pid, 2)

    assert_equal [2, 7], [Iodine.workers, Iodine.threads]
    said = assert_raises(Fairlead::Test::WarningError) { Iodine.workers = 5 }

    assert_match(/#{Regexp.escape(__FILE__)}:\d+: warning: Iodine\.workers= has no effect/, said.message)
  end

  def test_stop_asks_the_server_and_a_worker_itself
    assert_raises(Fairlead::Error) { Iodine.stop }

    Fairlead::Launcher.current = Launched.new(Process.ppid, 2)
    trap("TERM") { @seen << :term }
    Iodine.stop
    Fairlead::Test::Waiting.wait_until("the signal") { @seen.any? }

    assert_equal [:term], @seen
  end

  private

  def every_state
    %i[pre_start before_fork after_fork enter_child enter_master on_start on_parent_crush on_child_crush start_shutdown on_finish]
      .each { |state| Iodine.on_state(state) { @seen << state } }
  end

  # Reaches a state like the server.
  def reach(event, *arguments)
    Fairlead::Hooks.new.run(event, *arguments, log: Fairlead::EventLog.new(errors: @errors))
  end

  def options = Iodine.send(:process_options)
end
