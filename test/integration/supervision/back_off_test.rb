# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# Pauses before workers and spawners are replaced.
class BackOffTest < Minitest::Test
  include Fairlead::Test::Supervision

  MORTAL = "before_worker_boot { exit!(9) if File.exist?('deadly') }\n"

  # The system ends all of them at once, for example because it is out of memory.
  def test_one_event_that_ends_eight_fresh_workers_costs_little_time
    server = supervised(8)
    3.times do
      workers = wait_for_serving(server, 8)
      Process.kill(:KILL, *workers)
      wait_until("the end of all workers") { (server.worker_pids & workers).empty? }
      wait_until("a response", seconds: 3) { reply(server, seconds: 1) }
    end

    wait_for_serving(server, 8, seconds: 8)
  end

  def test_eight_workers_that_die_while_they_boot_are_back_a_second_after_the_cause_is_gone
    server = supervised(8, config: MORTAL)
    server.write("deadly", "")
    Process.kill(:KILL, *server.worker_pids)
    pass_time(8)
    File.unlink(server.path("deadly"))

    wait_until("a response", seconds: 2.5) { reply(server, seconds: 1) }
    wait_for_serving(server, 8, seconds: 8)
  end

  # The restart's new code replaces a missing spawner.
  def test_a_restart_while_a_lost_spawner_waits_for_its_turn_starts_only_one
    server = supervised(2)
    3.times do
      spawner = wait_until("a spawner", seconds: PATIENCE) { server.spawner_pid }
      Process.kill(:KILL, spawner)
      wait_until("its end") { server.spawner_pid != spawner }
    end
    server.write("version", "2")
    server.signal(:USR1)
    wait_for_line(server, /phased restart: done/)
    pass_time(4) # the lost spawner would have been replaced by now

    assert_equal 1, server.children(/\Afairlead: spawner/).size
    server.worker_pids.each { |worker| assert_replaces(server, worker) }
    assert_equal ["2"], Array.new(4) { reply(server).first }.uniq
    assert_ends(server)
  end

  # A hook makes forking slow, but booting is quick.
  def test_workers_are_not_late_because_others_are_forked_first
    server = prepared(6, config: "before_worker_fork { sleep 1 }", &:launch)
    wait_until("all workers", seconds: 20) { server.ready? || server.exited? }

    assert_equal 6, server.worker_pids.size
    refute_match(/is not ready after/, server.stderr)
  end
end
