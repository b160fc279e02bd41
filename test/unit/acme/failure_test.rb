# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeFailureTest < Minitest::Test
  include Fairlead::Test::AcmeOrders

  Failure = Fairlead::Acme::Failure
  NOW = Time.at(1_800_000_000)

  def test_the_pauses_double_up_to_a_limit_and_differ_a_little
    pauses = pauses(12)

    [60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600, 21_600].zip(pauses).each do |due, pause|
      assert_in_delta due, pause, due * Failure::JITTER
    end
    refute_equal pauses, pauses(12)
  end

  def test_an_authority_that_wants_a_longer_pause_gets_it
    assert_includes 7200..(7200 * 1.15), pause(retry_after: 7200)
    assert_includes 51..69, pause(retry_after: 5)
  end

  def test_no_authority_can_put_it_off_for_ever
    assert_operator pause(retry_after: 10**9), :<=, Failure::MOST * 1.15
  end

  def test_it_is_the_same_after_it_was_kept
    one = order("a.example")
    failure = Failure.after(nil, one, problem, now: NOW)
    kept = Failure.parse(failure.to_json, one)

    assert_equal [1, "refused"], [kept.count, kept.reason]
    assert_in_delta failure.retry_at.to_f, kept.retry_at.to_f, 0.001
  end

  # Whoever changes something wants to know whether that has helped.
  def test_it_does_not_count_for_another_order
    text = Failure.after(nil, order("a.example"), problem).to_json

    assert_nil Failure.parse(text, order("a.example", contact: "admin@a.example"))
    assert_nil Failure.parse(text, order("a.example", "b.example"))
  end

  def test_what_is_damaged_is_none
    ["{}", "", "[1]", "{\"order\":", "null"].each { |text| assert_nil Failure.parse(text, order("a.example")), text }
  end

  private

  def problem(**keywords) = Fairlead::Acme::Problem.new("unauthorized", "refused", **keywords)

  def pause(**keywords) = Failure.after(nil, order("a.example"), problem(**keywords), now: NOW).retry_at - NOW

  def pauses(count)
    last = nil
    Array.new(count) { (last = Failure.after(last, order("a.example"), problem, now: NOW)).retry_at - NOW }
  end
end
