# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/web_socket"

# The metrics of a real server, for Prometheus.
class MetricsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled
  include Fairlead::Test::WebSockets

  HEALTH = /health endpoints on (tcp:\S+)/
  # Computes for ever, without giving up the GVL.
  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/hang" then loop {}
      when "/sleep" then sleep
      when "/collect" then GC.start
      when "/socket" then env["rack.upgrade"] = Class.new { def on_message(client, data) = client.write(data) }.new
      when "/events" then env["rack.upgrade"] = Object.new
      end
      [env["PATH_INFO"] == "/missing" ? 404 : 200, {}, ["hello"]]
    }
  RUBY

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
    of_health = metrics(control(server, "/metrics", url: server.wait_for_output(HEALTH)[1]))

    assert_empty found.keys - of_health.keys
    assert_equal 403, control(server, "/metrics").status
  end

  def test_they_are_there_while_every_thread_hangs
    server = serve(APP, "-w", 2, "-t", "1:1", *FLAGS)
    2.times { connect(server).request("GET", "/hang") }
    found = wait_until("hanging threads") { metrics(command(server, "metrics")).then { |now| now if sum(now, "fairlead_busy_threads") == 2 } }

    assert_equal 0, sum(found, "puma_pool_capacity")
  end

  def duration(method, status, version = "1.1")
    "http_server_request_duration_seconds_count{http_request_method=\"#{method}\",http_response_status_code=\"#{status}\"," \
      "network_protocol_version=\"#{version}\",url_scheme=\"http\"}"
  end

  # Waits for samples of the metrics.
  def wait_for_samples(server, expected)
    found = nil
    wait_until("#{expected}, not #{found&.slice(*expected.keys)}") do
      found = metrics(command(server, "metrics"))
      expected.all? { |sample, value| found[sample] == value }
    end
    found
  end

  def test_responses_count_by_method_status_and_protocol_without_skipped_paths
    server = serve(APP, "-w", 2, "--metrics-skip", "/up,/health/*", *FLAGS)
    %w[/ /missing /up /health/db /].each { |path| get(server, path) }
    ask(server, "POST", "/", {}, "body")
    ask(server, "BREW", "/")
    found = wait_for_samples(server, duration("GET", 200) => "2", duration("GET", 404) => "1", duration("POST", 200) => "1",
                                     duration("_OTHER", 200) => "1")

    assert_equal(4, found.keys.count { |sample| sample.start_with?("http_server_request_duration_seconds_count") })
  end

  def test_counts_of_responses_survive_a_worker
    server = serve(APP, "-w", 1, *FLAGS)
    get(server)
    wait_for_samples(server, duration("GET", 200) => "1")
    Process.kill(:KILL, json(server, "status")["worker_status"].first["pid"])
    wait_for_samples(server, 'fairlead_worker_restarts_total{reason="ended"}' => "1", 'fairlead_processes{state="serving"}' => "1")
    get(server)

    wait_for_samples(server, duration("GET", 200) => "2")
  end

  def test_running_requests_are_active_until_they_end_even_with_their_worker
    server = serve(APP, "-w", 1, "-t", "2:2", *FLAGS)
    active = 'http_server_active_requests{http_request_method="GET",url_scheme="http"}'
    2.times { connect(server).request("GET", "/sleep") }
    wait_for_samples(server, active => "2")
    Process.kill(:KILL, json(server, "status")["worker_status"].first["pid"])

    wait_for_samples(server, active => nil)
  end

  def test_refusals_count_by_reason
    server = serve(APP, "-w", 1, "--body-max-bytes", 10, *FLAGS)
    connect(server).write("GET / HTTP/1.1\r\nbad field: x\r\n\r\n").answer
    ask(server, "POST", "/", {}, "x" * 100)

    wait_for_samples(server, 'fairlead_rejections_total{reason="malformed"}' => "1",
                             'fairlead_rejections_total{reason="body_too_large"}' => "1")
  end

  def test_clients_and_their_messages_count_by_protocol
    server = serve(APP, *FLAGS)
    socket = web_socket(server, "/socket")
    socket.send_text("hello")
    events = connect(server)
    events.request("GET", "/events", { "accept" => "text/event-stream" })
    labels = '{worker="0",slot="0"}'
    wait_for_samples(server, "fairlead_websockets#{labels}" => "1", "fairlead_event_streams#{labels}" => "1",
                             "fairlead_messages_received_total#{labels}" => "1", "fairlead_messages_sent_total#{labels}" => "1")
    [socket, events].each(&:close)

    wait_for_samples(server, "fairlead_websockets#{labels}" => "0", "fairlead_event_streams#{labels}" => "0")
  end

  def test_the_memory_and_the_garbage_collections_of_the_processes
    server = serve(APP, "-w", 2, *FLAGS)
    found = wait_until("the memory") { metrics(command(server, "metrics")).then { |now| now if sum(now, "fairlead_pss_bytes").positive? } }
    shown = found.select { |sample, _| sample.start_with?("fairlead_pss_bytes") }

    assert_equal %w[spawner supervisor worker worker], shown.keys.map { |sample| sample[/process="(\w+)"/, 1] }.sort
    assert_operator shown.values.map(&:to_i).min, :>, 1 << 18
    before = sum(found, "fairlead_gc_runs_total")
    get(server, "/collect")
    wait_until("a collection") { sum(metrics(command(server, "metrics")), "fairlead_gc_runs_total") > before }
  end

  def test_a_single_process_has_them_too
    server = serve(APP, *FLAGS)
    get(server)
    labels = '{worker="0",slot="0"}'

    wait_for_samples(server, "fairlead_requests_total#{labels}" => "1", "fairlead_limit_threads#{labels}" => "5",
                             "fairlead_response_memory_bytes#{labels}" => "0")
  end

  def test_open_http2_connections_count
    server = serve(APP, "-w", 1, *FLAGS)
    client = connect(server)
    client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".b)
    labels = '{worker="0",slot="0"}'
    wait_for_samples(server, "fairlead_open_http2_connections#{labels}" => "1", "fairlead_connections#{labels}" => "1")
    client.close

    wait_for_samples(server, "fairlead_open_http2_connections#{labels}" => "0", "fairlead_connections#{labels}" => "0")
  end
end
