# frozen_string_literal: true

require "test_helper"
require "support/rails_servers"

# Restarts of an application from `rails new`: by `rails restart`, which touches tmp/restart.txt, and by signals.
class RailsRestartsTest < Minitest::Test
  include Fairlead::Test::RailsServers

  WORKERS = { "WEB_CONCURRENCY" => "2" }.freeze
  PIDFILE = { "PIDFILE" => "tmp/pids/server.pid" }.freeze # since Rails 7.2, config/puma.rb sets none by default

  def test_rails_restart_brings_new_code_under_the_same_process_id
    server = rails_server
    2.upto(3) do |number|
      server.write("version", number.to_s)
      rails(server, "restart")
      wait_for_version(server, number)
    end
    # The old process still serves connections that have come to it.
    wait_until("the new code alone") { Array.new(5) { version(server).first }.uniq == [3] }

    assert_equal [3, server.pid], [version(server).first, written_pid(server)]
    refute_equal server.pid, version(server).last
    assert_leaves_no_pid_file server
  end

  def test_rails_restart_replaces_the_workers
    server = rails_server(environment: WORKERS)
    before = server.worker_pids
    server.write("version", "2")
    rails(server, "restart")
    wait_for_version(server, 2)
    wait_until("new workers") { (server.worker_pids & before).empty? && server.worker_pids.size == 2 }

    assert_includes server.worker_pids, version(server).last
    assert_equal server.pid, written_pid(server)
    assert_leaves_no_pid_file server
  end

  { "rails_server" => ->(test) { test.rails_server(environment: WORKERS) },
    "fairlead" => ->(test) { test.fairlead("-w", 2, "--preload", environment: PIDFILE) } }.each do |name, start|
    define_method(:"test_a_phased_restart_of_#{name}_brings_new_workers_and_leaves_the_pid_file") do
      server = start.call(self)
      2.upto(3) { |number| assert_phased_restart(server, number) }

      assert_leaves_no_pid_file server
    end
  end

  def test_a_phased_restart_of_code_that_cannot_be_loaded_leaves_the_old_workers
    server = rails_server(environment: WORKERS)
    before = server.wait_for_workers(2)
    server.write("config/initializers/broken.rb", "raise 'this code is broken'")
    server.signal(:USR1)
    server.wait_for_output(/phased restart: failed/, seconds: SECONDS)

    assert_equal [before, 1, server.pid], [server.worker_pids, version(server).first, written_pid(server)]
    assert_leaves_no_pid_file server
  end

  # Like a file that was copied without its mode.
  def test_a_bin_rails_that_cannot_be_run_leaves_the_old_code
    server = rails_server
    File.chmod(0o644, server.path("bin/rails"))
    server.write("version", "2")
    rails(server, "restart")
    server.wait_for_output(/hot restart: failed, generation 1 goes on serving/)
    server.wait_for_output(%r{bin/rails: Permission denied})

    assert_equal [[1, server.pid], server.pid], [version(server), written_pid(server)]
    assert_leaves_no_pid_file server
  end

  private

  def assert_phased_restart(server, number)
    before = server.worker_pids
    server.write("version", number.to_s)
    server.signal(:USR1)
    wait_until("phased restart #{number}", seconds: SECONDS) { server.stdout.scan(/phased restart: done/).size == number - 1 }

    assert_equal number, version(server).first
    assert_empty before & server.worker_pids
    assert_equal server.pid, written_pid(server)
  end

  def wait_for_version(server, number)
    wait_until("version #{number}", seconds: SECONDS) { version(server).first == number }
  end

  def assert_leaves_no_pid_file(server)
    assert_equal 0, server.stop.exitstatus
    assert_nil written_pid(server)
  end
end
