# frozen_string_literal: true

require "test_helper"

# Promises of SECURITY.md and docs/guides/fairness.md, and the tests that these documents name for them.
class PromisesTest < Minitest::Test
  # Ruby tests and Rust tests, in a file of a test folder or at the bottom of the code.
  TEST = %r{`((?:test/[\w./-]+_test\.rb|crates/[\w/-]+\.rs))`}

  # Documents with promises.
  SECURITY = "SECURITY.md"
  FAIRNESS = "docs/guides/fairness.md"

  def test_each_row_of_the_threat_model_and_of_the_limits_names_a_test
    { "Threat model" => 10, "Limits" => 15 }.each do |heading, least|
      rows = rows_below(heading)

      assert_operator rows.size, :>=, least, heading
      assert_empty without_test(rows), "#{SECURITY}, #{heading}: rows that name no test"
    end
  end

  def test_each_promise_of_fairness_names_a_test
    promises = section(FAIRNESS, "What fair means here").scan(/^\d+\. .*\n(?: {3}.*\n)*/)

    assert_operator promises.size, :>=, 7
    assert_empty without_test(promises), "#{FAIRNESS}: promises that name no test"
  end

  def test_each_test_that_is_named_exists_and_has_tests
    named = [SECURITY, FAIRNESS].flat_map { |document| read(document).scan(TEST).flatten }.uniq

    assert_operator named.size, :>, 10
    assert_empty(named.reject { |path| File.file?(File.join(ROOT, path)) && read(path).match?(/^ *def test_|#\[test\]|^mod /) })
  end

  private

  def read(path) = File.read(File.join(ROOT, path))

  # Text below a heading, up to the next one.
  def section(document, heading)
    read(document)[/^#+ #{Regexp.escape(heading)}\n(.*?)(?=^#|\z)/m, 1] || flunk("#{document} has no heading #{heading}")
  end

  # Rows of its table, without the column names.
  def rows_below(heading)
    section(SECURITY, heading).lines.grep(/^\|/).drop(2)
  end

  def without_test(promises) = promises.grep_v(TEST)
end
