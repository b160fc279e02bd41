# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/processes"

# The control server of a real server, with and without workers.
class ControlServerProcessTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "run ->(env) { [200, {}, ['hello']] }"

  def test_a_single_process_tells_its_statistics
    server = serve(APP, *FLAGS)
    3.times { get(server) }
    stats = wait_until("the end of three requests") do
      json(server, "stats").then do |now|
        now if now.values_at("requests_count", "pool_capacity") == [3, 5]
      end
    end

    assert_equal [5, 5], stats.values_at("max_threads", "pool_capacity")
    assert_in_delta Time.now.to_i, Time.iso8601(stats["started_at"]).to_i, 30
  end

  def test_workers_are_told_apart
    server = serve(APP, "-w", "2", *FLAGS)
    get(server)
    stats = json(server, "stats")

    assert_equal [2, 2, 0, 0], stats.values_at("workers", "booted_workers", "old_workers", "phase")
    assert_empty(stats["worker_status"].map { |worker| worker["pid"] } - server.worker_pids)
    wait_until("the request") { requests(json(server, "stats")) == 1 }
  end

  def test_the_status_says_how_long_requests_have_waited
    [[], ["-w", "2"]].each do |processes|
      server = serve(APP, *processes, *FLAGS)
      3.times { get(server) }
      queue = wait_until("three requests") { json(server, "status")["waits"]["queue_time"].then { |now| now if now["count"] == 3 } }

      assert_equal [Float, 16], [queue["seconds"].class, queue["buckets"].size]
      assert_equal queue["buckets"].values.sort, queue["buckets"].values
    end
  end

  def test_without_a_control_server_a_worker_knows_the_counters_of_all
    server = serve("require 'fairlead/compat/puma'\nrun ->(env) { [200, {}, [Puma.stats]] }", "-w", "2")
    2.times { get(server) }
    stats = wait_until("two requests") { JSON.parse(get(server).body).then { |now| now if requests(now) >= 2 } }

    assert_equal [2, 2, [true, true]], [*stats.values_at("workers", "booted_workers"), stats["worker_status"].map { |worker| worker["booted"] }]
  end

  def test_a_request_without_the_token_changes_nothing
    server = serve(APP, *FLAGS)

    assert_equal [403, "Invalid auth token"], control(server, "/stop").to_h.values_at(:status, :body)
    assert_equal 200, get(server).status
  end

  def test_stop_ends_the_server
    server = serve(APP, *FLAGS)

    assert_equal 200, command(server, "stop").status
    assert_equal 0, server.wait_exit.exitstatus
    refute_path_exists server.path(STATE)
  end

  def test_ready_fails_while_the_server_starts
    gate = "sleep(0.01) until File.exist?('open')\n"
    server = launch("#{gate}#{APP}", *FLAGS)
    wait_until("the control server") { File.exist?(server.path(STATE)) }
    status, _, errors = wait_until("an answer") { ctl("-S", server.path(STATE), "ready").then { |now| now if now.last.include?("starting") } }

    assert_equal [1, "fairlead ctl: ready: {\"status\":\"starting\"}\n"], [status, errors]
    server.write("open", "")
    wait_until("the start") { ctl("-S", server.path(STATE), "ready") == [0, "ready: ok\n", ""] }
  end

  def test_a_phased_restart_brings_new_code_and_is_told
    server = serve(APP, "-w", "2", *FLAGS)
    server.write("config.ru", APP.sub("hello", "new"))
    command(server, "phased-restart")
    status = wait_for_status(server, "the end of the restart") { |now| now.dig("restart", "state") == "done" }

    assert_equal ["phased", 2], [status["restart"]["kind"], status["generation"]]
    assert_equal "new", get(server).body
    assert_equal 1, json(server, "stats")["phase"]
  end

  def test_a_restart_that_fails_is_told_with_its_reason_and_the_old_code_serves_on
    server = serve(APP, "-w", "2", *FLAGS)
    server.write("config.ru", "raise 'no luck'")
    command(server, "phased-restart")
    status = wait_for_status(server, "the failure") { |now| now.dig("restart", "state") == "failed" }

    assert_match(/config\.ru:1: no luck/, status["restart"]["error"])
    assert_equal "ready", status["state"]
    assert_equal "hello", get(server).body
  end

  def test_a_hot_restart_keeps_a_token_that_nobody_has_chosen
    server = serve(APP, "--control-url", "auto", "--state", STATE)
    before = state(server)

    assert_match(/\A\h{32}\z/, before["control_auth_token"])
    assert_equal 0o600, File.stat(before["control_url"].delete_prefix("unix://")).mode & 0o777
    assert_equal [0, "restart: ok\n", ""], ctl("-S", server.path(STATE), "--wait", "restart")
    assert_equal before, state(server)
    assert_equal 0, ctl("-S", server.path(STATE), "--wait", "stop").first
    refute_path_exists before["control_url"].delete_prefix("unix://")
  end

  def test_the_socket_of_a_server_that_was_killed_is_removed_by_the_next_one
    killed, alive = Array.new(2) { serve(APP, "--control-url", "auto", "--state", STATE) }
    killed.signal(:KILL)
    killed.kill_all
    next_one = serve(APP, "--control-url", "auto", "--state", STATE)
    paths = [killed, alive, next_one].map { |server| state(server)["control_url"].delete_prefix("unix://") }

    assert_equal([false, true, true], paths.map { |path| File.exist?(path) })
    assert_equal 0, ctl("-S", alive.path(STATE), "status").first
  end

  def test_workers_come_and_go
    server = serve(APP, "-w", "2", *FLAGS)
    command(server, "worker-count-up")
    wait_for_status(server, "three workers") { |now| now["worker_status"].count { |worker| worker["booted"] } == 3 }
    command(server, "worker-count-down")

    wait_for_status(server, "two workers") { |now| now["worker_status"].size == 2 }
  end

  # The removed worker is the last one to be replaced: its removal ends the restart, within a turn of the control server.
  def test_a_command_that_ends_a_hot_restart_does_not_lose_the_new_address
    settings = ->(host) { "workers 2\nworker_settle_time 3\ncontrol_url 'tcp://#{host}:0'\ncontrol_token '#{TOKEN}'\nstate_path '#{STATE}'\n" }
    server = serve(APP, "-C", "fairlead.rb", files: { "fairlead.rb" => settings.call("127.0.0.1") })
    former = state(server).fetch("control_url")
    server.write("fairlead.rb", settings.call("localhost"))
    server.signal(:USR2)
    old = wait_until("two new workers") do
      workers = JSON.parse(control(server, "/status?token=#{TOKEN}", url: former).body).fetch("worker_status")
      workers.find { |worker| worker["generation"] == 1 } if workers.count { |worker| worker["generation"] == 2 && worker["booted"] } == 2
    end
    Process.kill(:KILL, old.fetch("pid"))
    wait_until("its end") { !Fairlead::Test::Processes.alive?(old.fetch("pid")) }
    control(server, "/worker-count-down?token=#{TOKEN}", url: former)
    server.wait_for_output(/hot restart: done/)

    refute_equal former, state(server).fetch("control_url")
    assert_equal "done", wait_for_status(server, "one worker") { |now| now["worker_status"].size == 1 }.dig("restart", "state")
    refute_match(/cannot accept/, server.stderr)
  end

  def test_an_address_that_is_in_use_prevents_the_start
    taken = TCPServer.new("127.0.0.1", 0)
    server = launch(APP, "--control-url", "tcp://127.0.0.1:#{taken.local_address.ip_port}")

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/cannot listen on tcp:.*the address is in use/, server.stderr)
  ensure
    taken&.close
  end

  def test_no_process_that_is_forked_keeps_the_control_server_open
    server = serve(APP, "-w", "1", *FLAGS)
    url = state(server)["control_url"]
    inode = listening_inode(Integer(url[/\d+\z/], 10))
    holders = Dir.children("/proc").grep(/\A\d+\z/).select do |pid|
      Dir.children("/proc/#{pid}/fd").any? { |fd| File.readlink("/proc/#{pid}/fd/#{fd}") == "socket:[#{inode}]" }
    rescue SystemCallError
      false
    end

    assert_equal [server.pid.to_s], holders
  end

  private

  # Number of requests that all workers have served.
  def requests(stats) = stats["worker_status"].sum { |worker| worker["last_status"]["requests_count"] }

  # Inode of the socket that listens on that port.
  def listening_inode(port)
    File.readlines("/proc/net/tcp").map(&:split).find { |fields| fields[1].end_with?(format(":%04X", port)) && fields[3] == "0A" }[9]
  end
end
