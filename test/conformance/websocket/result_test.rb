# frozen_string_literal: true

require "test_helper"
require_relative "result"
require_relative "table"

# Tests of Result: a bad report must never count as passed.
class AutobahnResultTest < Minitest::Test
  def test_a_case_has_passed_when_the_messages_and_the_close_were_right
    assert_equal :passed, verdict("OK", "OK")
  end

  def test_some_cases_only_inform
    assert_equal :informational, verdict("INFORMATIONAL", "INFORMATIONAL")
    assert_equal :non_strict, verdict("NON-STRICT", "OK")
  end

  def test_wrong_messages_and_a_compression_that_was_turned_down_are_failures
    ["FAILED", "UNIMPLEMENTED", "something new"].each { |behavior| assert_equal :failed, verdict(behavior, "OK"), behavior }
  end

  def test_a_wrong_close_is_a_failure_whatever_came_before
    ["FAILED", "WRONG CODE", "UNCLEAN", "FAILED BY CLIENT"].each do |close|
      %w[OK NON-STRICT INFORMATIONAL].each { |behavior| assert_equal :failed, verdict(behavior, close), close }
    end
  end

  def test_a_case_without_a_report_has_failed
    result = Autobahn::Result.new("12.3.4", nil)

    assert_predicate result, :failed?
    assert_equal 12, result.group
    assert_includes result.to_s, "12.3.4"
  end

  def test_a_failure_says_what_was_expected
    text = Autobahn::Result.new("1.1.1", report("FAILED", "WRONG CODE")).to_s

    ["1.1.1", "FAILED", "WRONG CODE", "1006", "Send a text.", "Receive it.", "It did not come."].each { |part| assert_includes text, part }
  end

  def test_a_row_counts_the_verdicts_of_a_group
    results = [%w[1.1 OK], %w[1.2 OK], %w[1.3 NON-STRICT], %w[12.1 OK]].map { |id, behavior| Autobahn::Result.new(id, report(behavior, "OK")) }
    rows = Autobahn::Table.new("message" => results, "context" => results.last(1)).rows

    assert_equal ["| 1 | messages of all sizes | none | 3 | 2 | 0 | 1 |\n",
                  "| 12 | compressed messages | `message` | 1 | 1 | 0 | 0 |\n",
                  "| 12 | compressed messages | `context` | 1 | 1 | 0 | 0 |\n"], rows
  end

  private

  def verdict(behavior, close) = Autobahn::Result.new("1.1.1", report(behavior, close)).verdict

  def report(behavior, close)
    { "behavior" => behavior, "behaviorClose" => close, "remoteCloseCode" => 1006, "description" => "Send a<br/>text.",
      "expectation" => "Receive it.", "result" => "It did not come.", "resultClose" => "", "wasNotCleanReason" => nil }
  end
end
