# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/control"
require "support/processes"

# Workers that are replaced one at a time, because they have used up a limit.
class RecyclingTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  HELLO = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"
  # Keeps 20 KB of each request: 10 MB/s at 500 requests/s.
  LEAKING = "LEAK = []\nrun ->(_env) { LEAK << (\"x\" * 20_000); [200, {}, [Process.pid.to_s]] }"

  # Sends 500 requests/s over 8 connections until the server has replaced +count+ workers for this reason. Returns the report of
  # the load tool.
  def load_until(count, reason, server)
    command = [Fairlead::LoadTool.find, "http://127.0.0.1:#{server.port}/", "--rate", "500", "-c", "8", "-d", "90", "--json", "-q"]
    Open3.popen2(*command) do |_input, output, tool|
      wait_for_status(server, "#{count} replaced workers", seconds: 80) { |status| status.dig("recycled", reason) >= count }
      Process.kill(:INT, tool.pid)
      JSON.parse(output.read).fetch("requests")
    end
  end

  def assert_told(expected, server)
    wait_until("#{expected.inspect} in the output") { server.stdout[expected] }
    pass
  end

  def assert_all_answered(report)
    assert_equal 0, report["failed"], report.inspect
    assert_operator report["answered"], :>, 0
  end

  def test_a_worker_that_leaks_10_mb_a_second_is_replaced_repeatedly_without_a_failed_request
    server = serve(LEAKING, "-w", 1, "--worker-max-memory", "60m", *FLAGS)
    report = load_until(3, "memory", server)

    assert_all_answered(report)
    assert_told(/recycling worker 0 \(pid \d+\): it uses \d+ MiB, more than \d+ MiB \(worker_max_memory\)/, server)
    assert_match(/recycled workers: \d+ for memory/, ctl("-S", server.path(STATE), "status")[1])
  end

  def test_a_worker_that_has_served_its_requests_is_replaced_without_a_failed_request
    server = serve(HELLO, "-w", 2, "--worker-max-requests", 500, *FLAGS)
    report = load_until(4, "requests", server)

    assert_all_answered(report)
    assert_told(/recycling worker \d \(pid \d+\): it has served \d+ requests, at least \d+ \(worker_max_requests\)/, server)
  end

  def test_a_worker_that_has_served_its_time_is_replaced_without_a_failed_request
    server = serve(HELLO, "-w", 2, "--worker-max-age", 2, "--worker-max-jitter", "0.5", *FLAGS)
    report = load_until(4, "age", server)

    assert_all_answered(report)
    assert_told(/recycling worker \d \(pid \d+\): it has served for \d+ s, at least \d s \(worker_max_age\)/, server)
  end

  # Its drain lasts for shutdown_timeout. Its replacement serves meanwhile.
  def test_a_worker_with_a_stuck_request_is_replaced
    app = "run ->(env) { sleep if env['PATH_INFO'] == '/hang'; [200, {}, [Process.pid.to_s]] }"
    server = serve(app, "-w", 2, "--request-timeout", "0.5", "--stuck-after", "0.5", "--shutdown-timeout", "1", *FLAGS)
    old = server.worker_pids
    clients = Array.new(2) { connect(server).tap { |client| client.request("GET", "/hang") } }
    assert_equal [504, 504], clients.map { |client| client.answer.status }
    wait_for_status(server, "a stuck worker") { |status| status.dig("recycled", "stuck").positive? }

    assert_logged(/recycling worker \d \(pid \d+\): \d requests? runs? for longer than stuck_after/, server)
    wait_until("the end of the stuck worker") { (old & server.worker_pids).size < 2 && server.worker_pids.size == 2 }
    assert_includes server.worker_pids.map(&:to_s), get(server).body
  end

  # A hot restart brings in other limits.
  def test_a_hot_restart_brings_in_other_limits
    server = serve(HELLO, "-w", 1, "-C", "limits.rb", *FLAGS, files: { "limits.rb" => "" })
    server.write("limits.rb", "worker_max_requests 10\nworker_max_jitter 0")
    server.signal(:USR2)
    wait_until("the restart") { server.stdout.include?("hot restart: done") }
    10.times { get(server) }

    wait_for_status(server, "a replacement") { |status| status.dig("recycled", "requests") == 1 }
    assert_told("it has served 10 requests, at least 10 (worker_max_requests)", server)
  end

  def test_a_worker_whose_replacement_does_not_boot_goes_on
    server = serve(HELLO, "-w", 1, "--no-preload", "--worker-max-requests", 5, "--worker-max-jitter", 0, *FLAGS)
    old = get(server).body
    server.write("config.ru", "raise 'broken'")
    4.times { get(server) }
    assert_logged(/worker 0 \(pid #{old}\) goes on, its replacement did not start: .*broken.*; trying again in 1 s/m, server)
    assert_logged(/worker 0 \(pid #{old}\) goes on, .*; trying again in 2 s/m, server)
    assert_equal old, get(server).body

    server.write("config.ru", HELLO)
    wait_for_status(server, "a replacement") { |status| status.dig("recycled", "requests") == 1 }
    wait_until("the end of the old worker") { get(server).body != old }
  end
end
