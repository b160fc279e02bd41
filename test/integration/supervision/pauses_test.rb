# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# A pause of the whole machine during each of the timeouts: none of them fires afterwards.
class PausesInEachStateTest < Minitest::Test
  include Fairlead::Test::Supervision

  PAUSE_SECONDS = 4

  LOAD = "sleep 0.01 until File.exist?('loaded')\n"
  BOOT = "before_worker_boot { sleep 0.01 until File.exist?('booted') }\n"

  SHAPES.each do |name, workers|
    define_method(:"test_in_the_load_#{name}") do
      server = prepared(workers, app: "File.write('loading', '')\n#{LOAD}#{VERSIONED}", &:launch)
      wait_until("the loading") { File.exist?(server.path("loading")) }
      pause(server)
      server.write("loaded", "")

      assert_ready_without_complaint(server)
    end

    define_method(:"test_while_it_serves_#{name}") do
      server = supervised(workers)
      serving = server.serving_pids
      spawner = server.spawner_pid
      pause(server)
      pass_time(1)

      assert_equal "1", reply(server).first
      assert_equal [serving, spawner], [server.serving_pids, server.spawner_pid]
      assert_empty server.stderr
    end
  end

  def test_while_workers_boot
    server = prepared(2, config: BOOT, &:launch)
    wait_for_serving(server, 2)
    pause(server)
    server.write("booted", "")

    assert_ready_without_complaint(server)
  end

  def test_while_new_workers_boot
    server = supervised(2, config: "before_worker_boot { sleep 0.01 until !File.exist?('hold') }")
    server.write("hold", "")
    server.write("version", "2")
    server.signal(:USR1)
    wait_until("the new worker", seconds: PATIENCE) { server.worker_pids.size == 3 }
    pause(server)
    File.unlink(server.path("hold"))

    wait_for_line(server, /phased restart: done/)
    assert_empty server.stderr
  end

  private

  # Stops every process of the server, the supervisor last, and continues them in the same order.
  def pause(server)
    processes = [*(Fairlead::Test::Processes.group(server.pid) - [server.pid]), server.pid]
    processes.each { |pid| Process.kill(:STOP, pid) }
    pass_time(PAUSE_SECONDS)
    processes.each { |pid| Process.kill(:CONT, pid) }
  end

  def assert_ready_without_complaint(server)
    wait_until("the server to be ready", seconds: PATIENCE) { server.ready? || server.exited? }
    assert_empty server.stderr
    assert_predicate server, :running?
  end
end
