# frozen_string_literal: true

require "test_helper"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"
require_relative "../../../bench/harness/plot"

# Scenarios about memory (bench/harness/drive/memory.rb).
class MemoryTest < Minitest::Test
  # The processes of a server: each look at them takes the next list of ids, and their memory in KiB.
  class Group
    def initialize(*looks)
      @looks = looks
    end

    def pids = (@looks.size > 1 ? @looks.shift : @looks.first).first

    def memory_by_role = { "leader" => 1024, "workers" => @looks.first.last, "total" => 1024 + @looks.first.last }
  end

  # Counts the requests that it is told to send.
  class Tool
    attr_reader :sent

    def mix(_url, requests:, **)
      (@sent ||= []) << requests
      [Bench::Measurement.new(errors: { "status" => 1 }), {}]
    end
  end

  Running = Struct.new(:group, :site) do
    def url(path) = "http://127.0.0.1#{path}"
  end
  Site = Struct.new(:text) do
    def write(_name, text) = self.text = text
  end

  def setup
    pages = [Bench::Drive::Pages::Page.new(weight: 2, name: "page", verb: "GET", path: "/a")]
    @drive = Bench::Drive::Memory.new(pages: pages, steps: [0, 10, 40], steady: 0)
  end

  def test_memory_is_read_after_so_many_requests_in_all
    tool = Tool.new
    found = measure(Group.new([[1, 2], 2048]), tool)

    assert_equal [10, 30], tool.sent
    assert_equal({ 0 => 3.0, 10 => 3.0, 40 => 3.0 }, found.pss.transform_values { |parts| parts["total"] })
    assert_equal [2.0, { "status" => 2 }], [found.pss_after(40, "workers"), found.errors]
    assert_match(/requests failed/, @drive.problem(found))
  end

  def test_it_is_read_when_processes_have_been_replaced_and_memory_stays_the_same
    group = Group.new([[1, 2], 9000], [[1, 2], 9000], [[1, 2, 3], 5000], [[1, 2, 3], 5000], [[1, 3], 4000], [[1, 3], 2048], [[1, 3], 2048])

    assert_in_delta 3.0, measure(group, Tool.new).pss_after(0)
  end

  def test_the_page_and_the_plot_have_the_steps
    metrics = %i[pss_start pss_warm pss_warm_vs_puma]
    scenario = Bench::Scenario.new("m", about: "", shapes: [], app: "", drive: @drive, metrics: metrics, plots: %w[memory])
    cells = { "fairlead" => 100.0, "puma-preload" => 200.0 }.map { |server, mib| cell(server, mib) }
    result = Bench::Result.new(scenario, {}, cells)

    assert_match(/\| fairlead 1 \| 50 \| 100 \| 0\.50 \|/, Bench::Report.new(result, []).to_markdown)
    assert_match(/2 000 requests.*<polyline/m, result.plots.fetch("memory"))
  end

  private

  def measure(group, tool)
    target = Bench::Drive::Target.new(tool, Running.new(group, Site.new), Bench::Shape.parse("2x5"), nil, "/")
    @drive.measure(target, 1)
  end

  def cell(server, mib)
    found = Bench::Measurement.new(round: 0, errors: {}, pss: { 0 => { "total" => mib / 2 }, 2000 => { "total" => mib } })
    Bench::Cell.new(shape: Bench::Shape.parse("2x5"), server: server, version: "1", measurements: [found], failures: [])
  end
end
