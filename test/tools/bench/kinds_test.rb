# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"
require_relative "../../../bench/harness/plot"

# Clients of two kinds under one load (bench/harness/drive/kinds.rb), and their measurements in a result.
class KindsTest < Minitest::Test
  Kind = Bench::Drive::Kinds::Kind

  # Records its calls. Clients of /quick get 100 responses each, others 2.
  class Tool
    attr_reader :asked

    def initialize
      @asked = Queue.new
    end

    def measure(url, connections:, seconds:, warm_up:)
      @asked << [url, connections, seconds, warm_up]
      requests = connections * (url.end_with?("/quick") ? 100 : 2)
      curve = { 0.0 => 1.0, 50.0 => 2.0, 95.0 => 3.0, 99.0 => 4.0, 100.0 => 5.0 }
      Bench::Measurement.new(rate: requests / seconds, requests: requests, seconds: seconds, errors: { "status" => 1 }, latency: curve, bytes: 9_999)
    end
  end

  def setup
    @drive = Bench::Drive::Kinds.new(answer_bytes: 1, mixes: { "one" => kinds(3, 1), "other" => kinds(1, 3) })
    @tool = Tool.new
  end

  def test_each_kind_asks_for_its_own_path_with_its_share_of_the_clients
    { "2x2:8 one" => [6, 2], "2x2:8 other" => [2, 6], "2x2:2 one" => [1, 1] }.each do |shape, numbers|
      @drive.measure(target(shape), 2.0)

      assert_equal [["http://there/quick", numbers.first, 2.0, 0.5], ["http://there/slow", numbers.last, 2.0, 0.5]], asked, shape
    end
  end

  def test_the_figures_are_those_of_the_first_kind_and_the_others_are_beside_them
    found = @drive.measure(target("2x2:8 one"), 2.0)

    assert_equal [600, 4, { "status" => 2 }], [found.requests, found.beside.requests, found.errors]
    assert_nil @drive.problem(found)
    found.beside.requests = 0
    assert_equal "no slow request got a response", @drive.problem(found)
  end

  def test_the_app_does_for_each_path_what_the_kinds_say
    slept = []
    app = Module.new do
      define_singleton_method(:run) { |callable| @app = callable }
      define_singleton_method(:sleep) { |seconds| slept << seconds }
      define_singleton_method(:app) { @app }
    end
    app.module_eval(@drive.app)
    app.app.call("PATH_INFO" => "/quick")

    assert_equal [200, [0.001]], [app.app.call("PATH_INFO" => "/").first, slept]
  end

  def test_a_simulation_learns_who_the_clients_are
    shape = Bench::Shape.parse("2x2:8 one")
    kinds = @drive.workload(shape)

    assert_equal [["quick", 6, [[:sleep, 0.001]]], ["slow", 2, [[:compute, 0.1]]]], kinds.map(&:to_a)
    assert_equal [0.5, 3.0, nil], @drive.extent(shape, 3.0).to_a
  end

  def test_both_kinds_and_the_prediction_are_in_the_table_and_outlive_their_file
    result = Bench::Result.new(scenario, {}, [cell("2x2:8 one")])
    copy = JSON.parse(JSON.generate(result.cells.map(&:as_json))).map { |hash| Bench::Cell.from_json(hash) }

    assert_equal report(result.cells), report(copy)
    row = report(copy).lines.grep(/^\| fairlead/).first.split("|").map(&:strip)
    assert_equal ["300", "3.00", "2", "2.00"], row.values_at(2, 3, 5, 6)
    assert_match(/\A\d.* \(×.\d+\.\d\d\)\z/, row[4])
    assert_match(/6 quick, 2 slow; one$/, report(copy))
  end

  def test_what_is_measured_and_what_is_predicted_is_drawn
    drawn = Bench::Plot::Predictions.new(Bench::Result.new(scenario, {}, [cell("2x2:8 one"), cell("2x2:8 one", "webrick")])).draw

    assert_equal [1, 4], [drawn.scan("<polyline").size, drawn.scan("<circle").size]
    refute_includes drawn, "webrick"
  end

  private

  def kinds(quick, slow)
    [Kind.new(name: "quick", path: "/quick", steps: [[:sleep, 0.001]], parts: quick),
     Kind.new(name: "slow", path: "/slow", steps: [[:compute, 0.1]], parts: slow)]
  end

  def scenario
    Bench::Scenario.new("two", about: "", shapes: [], drive: @drive, app: @drive.app, metrics: %i[rate p95 predicted_p95 beside_rate beside_p50])
  end

  def cell(shape, server = "fairlead")
    found = @drive.measure(target(shape), 2.0).tap { |measurement| measurement.round = 0 }
    Bench::Cell.new(shape: Bench::Shape.parse(shape), server: server, version: "1", measurements: [found], failures: [])
  end

  def report(cells)
    Bench::Report.new(Bench::Result.new(scenario, {}, cells), []).to_markdown
  end

  def target(shape)
    running = Struct.new(:address) { def url(path) = "#{address}#{path}" }.new("http://there")
    Bench::Drive::Target.new(@tool, running, Bench::Shape.parse(shape), nil, "/")
  end

  def asked
    Array.new(@tool.asked.size) { @tool.asked.pop }.sort_by(&:first)
  end
end
