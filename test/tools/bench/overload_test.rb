# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"

# Scenarios with more requests than the server can do (bench/harness/drive/overload.rb, flood.rb and stall.rb).
class OverloadTest < Minitest::Test
  Drive = Bench::Drive

  # Records its calls. A closed loop finds a capacity of 1,000 requests/s; in an open loop, half of the requests get a good response, three
  # quarters of these in time.
  class Tool
    attr_reader :asked

    def initialize
      @asked = Queue.new
    end

    def measure(_url, connections:, seconds:, keep_alive:, rate: nil, requests: nil, within: nil, source: nil)
      @asked << { connections: connections, seconds: seconds, keep_alive: keep_alive, rate: rate, requests: requests, within: within,
                  source: source }.compact
      return Bench::Measurement.new(rate: 1000.0, requests: 1, errors: {}) unless rate

      number = requests || (rate * seconds).to_i
      good = { "answered" => number / 2, "in_time" => number * 3 / 8, "in_time_per_second" => rate * 3 / 8,
               "latency_ms" => { "p50" => 20.0, "p99" => 150.0 } }
      Bench::Measurement.new(rate: rate, requests: number, seconds: seconds, errors: { "status" => number / 2, "timeout" => 3 }, good: good,
                             refused: { "answered" => number / 2, "latency_ms" => { "p99" => 0.5 } })
    end
  end

  def setup
    @tool = Tool.new
  end

  def test_the_rate_is_a_multiple_of_the_capacity_and_each_request_has_its_own_connection
    found = measure(Drive::Overload.new(answer_bytes: 7, times: 20), "2x5:3000 0.9 × capacity", 3.0)

    assert_equal [{ connections: 20, seconds: 2.0, keep_alive: false },
                  { connections: 3000, seconds: 60.0, keep_alive: false, rate: 900.0, within: 1 }], asked
    assert_in_delta 0.9 * 3 / 8, found.useful_share
    assert_equal [27_000, 3], [found.refused_count, found.failed_count]
  end

  def test_the_figures_of_a_flood_are_those_of_the_polite_client
    found = measure(Drive::Flood.new(answer_bytes: 7, times: 0.01), "2x5:2020", 3.0)
    flooder, polite = asked.drop(1).sort_by { |how| how[:source] }

    assert_equal ["127.0.0.2", 10_000.0], flooder.values_at(:source, :rate)
    assert_operator flooder[:seconds], :>, polite[:seconds]
    assert_equal ["127.0.0.3", 100.0, 3], polite.values_at(:source, :rate, :requests)
    assert_equal [3, 2, 0], [found.asked, found.lost, found.late]
    assert_in_delta 10 * 3.0 / 8, found.beside.useful_share
  end

  def test_the_figures_are_in_the_table_and_outlive_their_file
    overload = measure(Drive::Overload.new(answer_bytes: 7), "2x5:3000 3 × capacity", 2.0)
    assert_equal ["1 000", "1.12", "20", "150", "3 000", "0.50", "3"], row("overload", "2x5:3000 3 × capacity", overload)

    flood = measure(Drive::Flood.new(answer_bytes: 7, times: 0.01), "2x5:2020", 2.0)
    assert_equal ["1 000", "2", "1", "1", "20", "150", "1", "3.75", "10 100"], row("overload-flood", "2x5:2020", flood)

    stall = Bench::Measurement.new(requests: 90, errors: {}, stall: { "queued" => 5000, "first_ms" => 42.0, "served" => 90, "refused" => 10 })
    assert_equal ["5 000", "42", "90", "10"], row("overload-stall", "2x5:5000 #{Drive::Stall::RESET}", stall)
  end

  def test_only_fairlead_gets_the_options_of_its_overload_control
    scenario = Bench::Scenario.named("overload-flood")

    assert_equal [*Drive::Overload::CONTROL, "--fair-by", "ip"], scenario.arguments(Bench::Server.named("fairlead"))
    assert_empty scenario.arguments(Bench::Server.named("puma"))
    refute scenario.asks?(Bench::Server.named("unicorn"), scenario.shapes.first)
  end

  # With the application of the scenario, in real servers.
  def test_a_stall_ends_with_the_first_response_for_a_client_that_has_stayed
    [Drive::Stall::RESET, Drive::Stall::CLOSE].each do |how|
      drive = Drive::Stall.new(queued: 30, staying: 10, times: 1)
      found = serve(Bench::Scenario.named("overload-stall"), "2x1:30 #{how}") { |target| drive.measure(target, 0.5) }

      assert_equal [30, 20, 10, 10, 0], found.stall.values_at("queued", "left", "stayed", "served", "refused"), how
      assert_operator found.stall["first_ms"], :>, 0
      assert_match(/ms to the first useful response  10 of 10 served/, drive.summary(found))
    end
  end

  private

  def measure(drive, shape, seconds)
    target = target(shape)
    drive.warm_up(target, 1.0)
    drive.measure(target, seconds).tap { |found| assert_nil drive.problem(found) }
  end

  def target(shape)
    running = Struct.new(:address) { def url(path) = "#{address}#{path}" }.new("http://there")
    Drive::Target.new(@tool, running, Bench::Shape.parse(shape), nil, "/")
  end

  def serve(scenario, shape)
    server = Bench::Server.named("fairlead")
    shape = Bench::Shape.parse(shape)
    Bench::Site.open(scenario, server, shape) do |site|
      Bench::Running.start(server, site, shape, extra: scenario.arguments(server)) do |running|
        return yield Drive::Target.new(@tool, running, shape, nil, "/")
      end
    end
  end

  def asked = Array.new(@tool.asked.size) { @tool.asked.pop }

  # The figures of a measurement in the table of a scenario, after a way through JSON.
  def row(scenario, shape, found)
    scenario = Bench::Scenario.named(scenario)
    cell = Bench::Cell.new(shape: Bench::Shape.parse(shape), server: "fairlead", version: "1", measurements: [found], failures: [])
    cells = JSON.parse(JSON.generate([cell.as_json])).map { |hash| Bench::Cell.from_json(hash) }
    line = Bench::Report.new(Bench::Result.new(scenario, {}, cells), []).to_markdown.lines.grep(/^\| fairlead/).first
    line.split("|").map(&:strip).drop(2).reject(&:empty?)
  end
end
