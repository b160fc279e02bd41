# frozen_string_literal: true

require "test_helper"
require "support/control"

# The probes of Kubernetes and of load balancers, on a separate address.
class HealthProcessTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  URL = /health endpoints on (tcp:\S+)/

  def probe(server, path)
    answer = control(server, path, url: server.wait_for_output(URL)[1])
    [answer.status, JSON.parse(answer.body)["status"]]
  end

  [["without_workers", []], ["with_workers", ["-w", "2"]]].each do |name, flags|
    define_method(:"test_it_is_ready_when_it_serves_and_no_longer_when_it_drains_#{name}") do
      app = "GO = File.expand_path('go')\nsleep 0.01 until File.exist?(GO)\n" \
            "run ->(env) { sleep 0.01 until File.exist?(GO + env['PATH_INFO'].delete('/')); [200, {}, ['hello']] }"
      server = launch(app, "--health-url", "tcp://127.0.0.1:0", *flags)

      assert_equal [[503, "starting"], [200, "live"]], [probe(server, "/ready"), probe(server, "/live")]
      server.write("go", "")
      wait_until("readiness") { probe(server, "/ready") == [200, "ready"] }
      server.wait_for_output(/listening on/)
      client = connect(server).request("GET", "/2")
      server.signal(:TERM)
      wait_until("the drain") { probe(server, "/ready") == [503, "draining"] }

      assert_equal [200, "live"], probe(server, "/live")
      server.write("go2", "")

      assert_equal "hello", client.answer.body
      assert_equal 0, server.wait_exit.exitstatus
    end

    define_method(:"test_it_goes_on_accepting_for_the_delay_#{name}") do
      server = serve("run ->(env) { [200, {}, ['hello']] }", "--health-url", "tcp://127.0.0.1:0", "--drain-delay", "1", *flags)
      asked_at = monotonic
      server.signal(:TERM)
      wait_until("no readiness") { probe(server, "/ready") == [503, "draining"] }

      assert_equal "hello", get(server).body
      assert_equal 0, server.wait_exit.exitstatus
      assert_operator monotonic - asked_at, :>=, 1
    end
  end

  def test_silent_connections_and_busy_threads_delay_no_probe
    app = "run ->(env) { sum = 0; loop { sum += 1 } }"
    server = serve(app, "--health-url", "tcp://127.0.0.1:0", "-t", "2:2")
    port = Integer(server.wait_for_output(URL)[1][/\d+\z/], 10)
    2.times { connect(server).request }
    silent = Array.new(100) { adopt(TCPSocket.new("127.0.0.1", port)) }

    %w[/ready /live].each { |path| assert_equal 200, probe(server, path).first }
    refute_predicate silent.last, :readable?
    server.signal(:KILL)
  end

  def test_there_are_no_commands_at_this_address
    server = serve("run ->(env) { [200, {}, []] }", "--health-url", "tcp://127.0.0.1:0")

    assert_equal 404, control(server, "/stats", url: server.wait_for_output(URL)[1]).status
  end
end
