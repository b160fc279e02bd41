# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Timers and deferred tasks: they run on the threads of the server, and end with it.
class TimersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  def test_a_block_runs_once_after_its_time
    server = pushing(CONSOLE)
    started = monotonic
    requested(server, "Fairlead.run_after(0.3) { Notes.add('run') }; 1")

    assert_equal ["run"], wait_for_notes(server, 1)
    assert_operator monotonic - started, :>=, 0.3
    4.times { assert_served(server) }
    assert_equal ["run"], notes(server)
  end

  def test_a_block_runs_as_often_as_it_is_told_to
    server = pushing(CONSOLE)
    requested(server, "n = 0; Fairlead.run_every(0.02, 3) { Notes.add(n += 1) }; 1")

    assert_equal %w[1 2 3], wait_for_notes(server, 3)
    requested(server, "Fairlead.run_every(0.02) { Notes.add('more') }; 1")
    assert_equal %w[1 2 3 more more more], wait_for_notes(server, 6).first(6)
  end

  def test_a_timer_can_be_cancelled
    server = pushing(CONSOLE, setup: "TIMERS = []")
    requested(server, "TIMERS << Fairlead.run_every(0.01) { Notes.add('run') }; 1")
    wait_for_notes(server, 2)
    requested(server, "TIMERS.first.cancel; 1")
    count = notes(server).size

    requested(server, "Fairlead.run_after(0.2) { Notes.add('later') }; 1")
    wait_until("the later message") { notes(server).include?("later") }
    assert_operator notes(server).size, :<=, count + 2
  end

  def test_what_a_block_raises_is_logged_and_the_timer_goes_on
    server = pushing(CONSOLE)
    requested(server, "n = 0; Fairlead.run_every(0.02, 3) { Notes.add(n += 1); raise KeyError, 'in a timer' }; 1")

    assert_equal %w[1 2 3], wait_for_notes(server, 3)
    wait_until("three lines") { server.stderr.scan("in a timer").size == 3 }
    assert_served(server)
  end

  def test_timers_set_while_the_application_loads_run_in_every_worker
    server = pushing(CONSOLE, "-w", 2, "--preload", setup: "Fairlead.run_after(0.05) { Notes.add(Process.pid) }")

    assert_equal server.worker_pids.map(&:to_s).sort, wait_for_notes(server, 2).sort
  end

  def test_timers_do_not_keep_the_server_from_ending
    server = pushing(CONSOLE)
    requested(server, "Fairlead.run_every(0.01) { Notes.add('run') }; Fairlead.run_after(1000) { }; 1")
    wait_for_notes(server, 1)

    assert_equal 0, server.stop.exitstatus
  end
end
