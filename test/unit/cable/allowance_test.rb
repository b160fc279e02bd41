# frozen_string_literal: true

require "test_helper"

# The room of sessions in the history: Fairlead::Cable::Extended::Allowance.
class AllowanceTest < Minitest::Test
  Allowance = Fairlead::Cable::Extended::Allowance
  MESSAGE = 1_000 - Allowance::OVERHEAD

  def setup
    @now = 0
    @allowance = Allowance.new(64_000, 300) { @now }
  end

  def test_an_owner_takes_at_most_a_sixteenth
    assert_equal 4, take(5, "eve")
    assert_equal 1, take(1, "ann")
  end

  def test_all_owners_take_at_most_half
    assert_equal(32, (1..64).sum { |number| take(1, "owner#{number}") })
  end

  def test_there_is_room_again_after_a_while
    take(5, "eve")
    @now = 299
    assert_equal 0, take(1, "eve")
    @now = 300
    assert_equal 4, take(5, "eve")
  end

  private

  # Returns how many messages have found room.
  def take(count, owner) = Array.new(count) { @allowance.take(owner, MESSAGE) }.count(true)
end
