# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeFailureTest < Minitest::Test
  include Fairlead::Test::AcmeOrders

  Failure = Fairlead::Acme::Failure
  NOW = Time.at(1_800_000_000)

  def test_it_is_the_same_after_it_was_kept
    one = order("a.example")
    failure = failed(one, now: NOW)
    kept = Failure.parse(failure.to_json, one, now: NOW)

    assert_equal [1, "refused"], [kept.count, kept.reason]
    assert_in_delta failure.retry_at.to_f, kept.retry_at.to_f, 0.001
  end

  # An operator who changes an order wants to know if the change has helped.
  def test_it_does_not_count_for_another_order
    text = failed(order("a.example")).to_json

    assert_nil Failure.parse(text, order("a.example", contact: "admin@a.example"))
    assert_nil Failure.parse(text, order("a.example", "b.example"))
  end

  # After a wrong clock, or in an edited file.
  def test_nothing_is_put_off_for_longer_than_any_pause
    one = order("a.example")
    %w[2099-01-01T00:00:00Z 9999-12-31T23:59:59Z].each do |time|
      text = JSON.generate(JSON.parse(failed(one, now: NOW).to_json).merge("retry_at" => time))

      assert_equal NOW + Failure::LONGEST, Failure.parse(text, one, now: NOW).retry_at
    end
    set_back = failed(one, now: NOW + (365 * 86_400))

    assert_equal NOW + Failure::LONGEST, set_back.bounded(NOW).retry_at
    assert_same set_back, set_back.bounded(NOW + (365 * 86_400))
  end

  def test_a_count_is_a_sensible_number
    one = order("a.example")
    [-5, 0, 10**30].each do |count|
      text = JSON.generate(JSON.parse(failed(one, now: NOW).to_json).merge("count" => count))

      assert_includes 1..Failure::COUNT_MOST, Failure.parse(text, one, now: NOW).count
    end
  end

  def test_the_reason_is_told_of_what_is_damaged
    one = order("a.example")
    kept = JSON.parse(failed(one).to_json)
    damages = ["", "\xff\xfe".b, "[" * 5000, *[{ count: nil }, { count: {} }, { retry_at: "soon" }, { retry_at: 7 }].map do |values|
      JSON.generate(kept.merge(values.transform_keys(&:to_s)))
    end]
    damages.each do |text|
      reasons = []

      assert_nil Failure.parse(text, one) { |reason| reasons << reason }
      assert_equal 1, reasons.size, text[0, 50]
    end
  end

  def test_what_is_damaged_is_none
    ["{}", "", "[1]", "{\"order\":", "null"].each { |text| assert_nil Failure.parse(text, order("a.example")), text }
  end

  private

  def failed(order, now: Time.now) = Failure.new(order, count: 1, reason: "refused", retry_at: now + 60)
end
