# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "socket"
require_relative "../../../bench/harness"

# Scenarios with HTTP/2: the selected servers, the arguments of the load tool, and a router in front of servers.
class BenchHttp2Test < Minitest::Test
  include Fairlead::Test::Waiting

  # Records its calls.
  class Tool
    attr_reader :asked

    def initialize
      @asked = []
    end

    def measure(url, **how)
      @asked << [url, how]
      classes = [{ "share" => 9.9, "latency_ms" => { "p99" => 30.0 } }, { "share" => 0.11, "latency_ms" => { "p99" => 7.0 } }]
      http2 = { "classes" => classes, "fairness" => { "jain" => 0.98 } }
      Bench::Measurement.new(rate: 50.0, requests: 100, seconds: 2.0, errors: {}, latency: { 99.0 => 20.0 }, bytes: 9_999, http2: http2)
    end
  end

  Running = Struct.new(:tls, :http2) do
    def url(path) = "http://there#{path}"

    def http2? = http2
  end

  def setup
    @tool = Tool.new
  end

  def test_servers_that_speak_it_are_asked_and_ours_without_it_beside_them
    { "h2" => %w[fairlead fairlead-http1 nginx nginx-fairlead], "h2-fair" => %w[fairlead nginx-fairlead],
      "h2-large" => %w[fairlead fairlead-http1 fairlead-public nginx], "lag-h2" => %w[fairlead fairlead-no-room fairlead-http1],
      "router" => %w[fairlead fairlead-http1 puma] }.each do |name, servers|
      scenario = Bench::Scenario.named(name)
      shape = scenario.shapes.first

      assert_equal servers.sort, Bench::Server.all.select { |server| scenario.asks?(server, shape) }.map(&:name).sort, name
    end
  end

  def test_the_best_rate_is_that_of_all_streams
    assert_equal([40, 40], %w[4x2:4 4x2:2].map { |shape| Bench::Scenario.named("lag-h2").best_rate(Bench::Shape.parse(shape)).round })
    assert_equal 25, Bench::Scenario.named("h2-fair").best_rate(Bench::Shape.parse("1x5:11")).round
  end

  def test_other_scenarios_ask_nobody_who_is_there_for_comparison
    shape = Bench::Shape.parse("2x2")
    %w[fairlead-http1 nginx-fairlead].product(%w[short lag large]).each do |server, scenario|
      refute Bench::Scenario.named(scenario).asks?(Bench::Server.named(server), shape), "#{server} in #{scenario}"
    end
  end

  def test_the_servers_without_it_are_asked_on_as_many_connections_as_there_are_streams
    drive = Bench::Drive::Streams.new(answer_bytes: 1, streams: 32)
    drive.measure(target(true, "1x5:2"), 3.0)
    drive.measure(target(false, "1x5:2"), 3.0)

    assert_equal [{ seconds: 3.0, connections: 2, streams: 32 }, { seconds: 3.0, connections: 64 }], @tool.asked.map(&:last)
  end

  def test_a_slow_app_is_warmed_up_by_number_and_measured_for_longer
    drive = Bench::Drive::Streams.new(answer_bytes: 1, streams: "100,1x10", slow: true)
    drive.warm_up(target(true, "1x5:11"), 1.0)
    found = drive.measure(target(true, "1x5:11"), 3.0)

    assert_equal [Bench::Drive::PATIENCE] * 2, @tool.asked.map { |_, how| how[:timeout] }, "a fair server makes the many wait"
    assert_equal [22, nil], @tool.asked.map { |_, how| how[:requests] }
    assert_equal [1.0, 18.0], @tool.asked.map { |_, how| how[:seconds] }
    assert_equal [9.9, 0.11, 7.0, 0.98], [found.share_of_class(0), found.share_of_class(1), found.percentile_of_class(1, 99), found.stream_jain]
    assert_equal found, Bench::Measurement.from_json(JSON.parse(JSON.generate(found.as_json)))
  end

  def test_nginx_speaks_it_where_it_is_asked_for_it
    { "h2" => " http2;", "short" => ";" }.each do |name, ending|
      scenario = Bench::Scenario.named(name)
      nginx = Bench::Server.named("nginx")
      Bench::Site.open(scenario, nginx, scenario.shapes.first) do |site|
        assert_includes nginx.send(:configuration, site, 7, scenario.shapes.first), "listen 127.0.0.1:7#{ending}\n"
      end
    end
  end

  def test_a_router_passes_requests_on_to_all_servers_and_ends_with_the_measurement
    skip "Go 1.24 or newer is not installed" unless Bench::Binaries.router
    servers = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    serving = servers.map.with_index { |server, number| Thread.new { loop { answer(server.accept, number.to_s) } } }
    url = nil
    Bench::Router.start(servers.map { |server| server.local_address.ip_port }, http2: false, keep_alive: false) do |router|
      url = URI(router.url("/path"))
      seen = []
      wait_until("a request to both servers") { (seen << Net::HTTP.get(url)).uniq.size == 2 }
    end
    assert_raises(SystemCallError) { Net::HTTP.get(url) }
  ensure
    [*serving, *servers].each { |one| one.respond_to?(:kill) ? one.kill : one.close }
  end

  private

  def target(http2, shape)
    Bench::Drive::Target.new(@tool, Running.new(nil, http2), Bench::Shape.parse(shape), nil, "/")
  end

  def answer(client, body)
    client.gets("\r\n\r\n")
    client.write("HTTP/1.1 200 OK\r\ncontent-length: #{body.size}\r\nconnection: close\r\n\r\n#{body}")
  ensure
    client.close
  end
end
