# frozen_string_literal: true

require "test_helper"
require "rack"
require_relative "puma/comparison"
require_relative "puma/guide"
require_relative "puma/puma"
require "support/needed_gems"

# Puma and Fairlead respond to the same requests with the same application. The migration guide must explain each difference,
# and each row of the guide must describe an existing difference.
class PumaAnswersTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::NeededGems

  APP = File.read(File.join(__dir__, "puma/application.ru"))
  RAILS_APP = File.read(File.join(__dir__, "puma/rails.ru"))
  OPTIONS = %w[--puma-env --trusted-proxies 127.0.0.0/8].freeze
  LETTERS = { "letters.txt" => "abcdefghijklmnopqrstuvwxyz" }.freeze
  GUIDE = File.join(ROOT, "docs/guides/migrating_from_puma.md")

  def setup
    skip "#{PumaAnswers::Puma::PROGRAM} is not installed (package puma)" unless PumaAnswers::Puma.available?
    needs_gems("puma", "rails")
  end

  def test_each_difference_is_in_the_guide_and_each_row_of_the_guide_is_needed
    guide = self.guide
    differences = [*asked(PumaAnswers::REQUESTS), *asked(PumaAnswers::DEVELOPMENT, "-e", "development"), *asked(PumaAnswers::WORKERS, "-w", "1"),
                   *asked(PumaAnswers::WITH_OPTIONS, ours: OPTIONS), *asked(PumaAnswers::RAILS, app: RAILS_APP)]
    explained = differences.to_h { |difference| [difference, guide.rows_for(*difference.to_a)] }

    assert_empty explained.select { |_, rows| rows.empty? }.keys.map(&:to_s), "not in the guide"
    assert_empty (guide.rows - explained.values.flatten).map(&:to_s), "only in the guide"
    refute_empty differences
  end

  def test_each_row_of_the_guide_has_a_reason
    assert_empty guide.rows.select { |row| row.reason.to_s.empty? }
  end

  def test_a_row_explains_what_it_says_and_nothing_else
    rows = ->(*difference) { guide("| `GET /`; `env…` | status | `200` | `4…` | why |\n").rows_for(*difference) }

    assert_equal [1, 1], [["env of a POST", "status", "200", "404"], ["GET /", "status", "200", "4"]].map { |difference| rows[*difference].size }
    [["HEAD /", "status", "200", "400"], ["GET /", "reason", "200", "400"], ["GET /", "status", "200", "500"],
     ["GET /", "status", "2000", "400"], ["GET /", "status", nil, "400"]].each { |difference| assert_empty rows[*difference] }
  end

  def test_a_row_holds_for_its_versions
    { "none (until Puma 5)" => [5], "empty (from Puma 6)" => [6, 7], "`x`" => [5, 6, 7] }.each do |cell, expected|
      line = "| `GET /` | body | #{cell} | `y` | why |\n"

      assert_equal expected, [5, 6, 7].reject { |major| guide(line, "Puma" => major).rows.empty? }
    end
  end

  private

  def guide(lines = nil, versions = self.versions)
    PumaAnswers::Guide.new(lines ? "## Answers\n\n#{lines}" : File.read(GUIDE), versions)
  end

  def versions = { "Puma" => PumaAnswers::Puma.major_version, "Rack" => Integer(Rack.release[/\d+/], 10) }

  # Returns the differences between both servers with these options; +ours+: further options of Fairlead.
  def asked(requests, *flags, app: APP, ours: [])
    flags = ["-e", "production", "--early-hints", *flags]
    puma = own(PumaAnswers::Puma.new(app, *flags, files: LETTERS)).start(seconds: 40)
    fairlead = own(Fairlead::Test::ServerProcess.new(app, *flags, *ours, files: LETTERS)).start(seconds: 40)
    PumaAnswers::Comparison.new(puma.port, fairlead.port).differences(requests)
  end
end
