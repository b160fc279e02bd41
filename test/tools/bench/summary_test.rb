# frozen_string_literal: true

require "test_helper"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"
require_relative "../../../bench/harness/plot"

# The small plot of a scenario (bench/harness/plot/summary.rb), as the README shows it.
class SummaryTest < Minitest::Test
  HEADLINE = { title: "waits", text: "two clients", percentiles: [50, 99] }.freeze

  def test_each_server_has_a_bar_for_each_percentile_and_the_longest_one_fills_the_row
    drawn = draw([cell("fairlead", 100.0, 200.0), cell("puma", 50.0, 1900.0)])

    assert_equal %w[10 5 20 190], widths(drawn)
    assert_includes drawn, "Fairlead 1 half within 100, 99 % within 200; Puma 1 half within 50, 99 % within 1900"
  end

  def test_the_first_shape_is_drawn_without_references
    drawn = draw([cell("fairlead", 1.0, 2.0), cell("fairlead-no-slices", 3.0, 4.0), cell("fairlead", 5.0, 6.0, shape: "2x2")])

    assert_equal 2, widths(drawn).size
    assert_includes drawn, "10 clients · 1 process with 5 threads"
  end

  def test_nothing_is_drawn_without_a_headline
    assert_nil draw([cell("fairlead", 1.0, 2.0)], headline: nil)
  end

  private

  def draw(cells, headline: HEADLINE)
    scenario = Bench::Scenario.new("some", about: "", shapes: [], metrics: [], app: "", headline: headline)
    Bench::Plot::Summary.new(Bench::Result.new(scenario, {}, cells)).draw
  end

  def cell(server, median, slow, shape: "1x5")
    measured = Bench::Measurement.new(rate: 1.0, requests: 1, seconds: 1.0, errors: {}, latency: { 50.0 => median, 99.0 => slow })
    Bench::Cell.new(shape: Bench::Shape.parse(shape), server: server, version: "1", measurements: [measured], failures: [])
  end

  # Widths of the bars, without the card around them.
  def widths(drawn)
    drawn.scan(/<rect x="132" y="[\d.]+" width="([\d.]+)"/).flatten
  end
end
