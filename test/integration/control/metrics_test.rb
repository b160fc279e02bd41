# frozen_string_literal: true

require "test_helper"
require "support/control"

# The metrics of a real server, for Prometheus.
class MetricsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  HEALTH = /health endpoints on (tcp:\S+)/
  # Computes for ever, without giving up the GVL.
  APP = "run ->(env) { env['PATH_INFO'] == '/hang' ? loop {} : [200, {}, ['hello']] }"

  # Sample => its value, as text.
  def metrics(answer)
    assert_equal 200, answer.status
    answer.body.lines(chomp: true).reject { |line| line.start_with?("#") }.to_h { |line| line.rpartition(" ").values_at(0, 2) }
  end

  def sum(metrics, name) = metrics.sum { |sample, value| sample[/\A\w+/] == name ? Integer(value, 10) : 0 }

  def test_every_worker_tells_its_figures
    server = serve(APP, "-w", 2, "--health-url", "tcp://127.0.0.1:0", *FLAGS)
    3.times { get(server) }
    found = wait_until("the requests") { metrics(command(server, "metrics")).then { |now| now if sum(now, "fairlead_requests_total") == 3 } }

    assert_equal %w[0 1], found.keys.grep(/\Afairlead_connections/).map { |sample| sample[/worker="(\d)"/, 1] }.sort
    assert_equal %w[2 2 1], found.values_at("puma_workers", 'fairlead_processes{state="serving"}', "fairlead_ready")
    assert_equal "3", found['fairlead_queue_time_seconds_bucket{le="+Inf"}']
    assert_equal found.keys, metrics(control(server, "/metrics", url: server.wait_for_output(HEALTH)[1])).keys
    assert_equal 403, control(server, "/metrics").status
  end

  def test_they_are_there_while_every_thread_hangs
    server = serve(APP, "-w", 2, "-t", "1:1", *FLAGS)
    2.times { connect(server).request("GET", "/hang") }
    found = wait_until("hanging threads") { metrics(command(server, "metrics")).then { |now| now if sum(now, "fairlead_busy_threads") == 2 } }

    assert_equal 0, sum(found, "puma_pool_capacity")
  end

  def test_a_single_process_has_them_too
    server = serve(APP, *FLAGS)
    get(server)

    wait_until("the request") { sum(metrics(command(server, "metrics")), "fairlead_requests_total") == 1 }
  end
end
