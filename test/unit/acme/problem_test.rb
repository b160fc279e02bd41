# frozen_string_literal: true

require "test_helper"

# Texts from a remote server that end up in logs.
class AcmeProblemTest < Minitest::Test
  Problem = Fairlead::Acme::Problem

  def test_nothing_controls_a_terminal_or_begins_a_line
    problem = Problem.new("rate\e[31mLimited", "a\r\nb \e]0;title\a \u202Ereversed\u2028 \u0000 \u{E000} é")

    assert_equal ["rate?[31mLimited", "a b ?]0;title? ?reversed? ? ? é"], [problem.type, problem.message]
  end

  def test_it_is_cut
    problem = Problem.new("x" * 10_000, "é" * 10_000_000)

    assert_equal [Problem::TYPE_MOST, Problem::MESSAGE_MOST], [problem.type.length, problem.message.length]
    assert problem.message.end_with?("é…")
  end

  def test_bytes_that_are_no_text_cost_neither_the_type_nor_the_time_to_wait
    problem = Problem.new("rateLimited", "too many \xff\xfe certificates".b, retry_after: 3600)

    assert_equal ["rateLimited", "too many ?? certificates", 3600], [problem.type, problem.message, problem.retry_after]
  end

  def test_a_time_to_wait_is_a_number_of_seconds
    [0, -1, "3600", nil].each { |value| assert_nil Problem.new("a", "b", retry_after: value).retry_after }
  end
end
