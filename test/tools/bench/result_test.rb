# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/plot"
require_relative "../../../bench/harness/result"

# The file of all results, and the pages made from it.
class BenchResultTest < Minitest::Test
  FILE = File.join(ROOT, "bench/results.json")

  def test_a_result_takes_the_place_of_an_older_one_and_leaves_the_others
    in_a_folder do |folder|
      file = File.join(folder, "new/results.json")
      result("wait", "Date" => "old").store(file)
      result("short").store(file)
      result("wait", "Date" => "new").store(file)

      assert_equal({ "short" => nil, "wait" => "new" }, JSON.parse(File.read(file)).transform_values { |one| one["facts"]["Date"] })
      assert_equal "new", Bench::Result.load(Bench::Scenario.named("wait"), file, nil).facts["Date"]
      assert_nil Bench::Result.load(Bench::Scenario.named("wait"), file, "other")
    end
  end

  def test_a_server_without_any_measurement_is_named
    cells = [["one", []], ["one", [:found]], ["two", []]].map do |server, measurements|
      Bench::Cell.new(server: server, measurements: measurements)
    end

    assert_equal ["two"], Bench::Result.new(Bench::Scenario.named("wait"), {}, cells).unmeasured
  end

  def test_each_stored_result_makes_a_page
    in_a_folder do |folder|
      stored = Bench::Result.stored(FILE).keys
      stored.each { |name| Bench::Result.load(Bench::Scenario.named(name), FILE, nil).draw(folder) }

      assert_equal stored.sort, Dir.children(folder).grep(/\.md\z/).map { |name| File.basename(name, ".md") }.sort
    end
  end

  private

  def result(name, facts = {}) = Bench::Result.new(Bench::Scenario.named(name), facts, [])

  def in_a_folder(&block) = Dir.mktmpdir(&block)
end
