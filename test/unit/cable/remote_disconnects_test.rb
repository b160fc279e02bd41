# frozen_string_literal: true

require "test_helper"

class CableRemoteDisconnectsTest < Minitest::Test
  Registry = Fairlead::Cable::Sockets::RemoteDisconnects::Registry

  def setup
    @begin = Fairlead::Clock.now
    @registry = Registry.new
  end

  def test_messages_are_kept_for_connections_that_come_later
    @registry.publish("ann", "one")
    now = Fairlead::Clock.now
    @registry.publish("bob", "two")
    @registry.publish("ann", "three")

    assert_equal %w[one three], past("ann", now)
    assert_equal ["two"], past("bob", now)
    assert_empty past("ann", now + Registry::LATE + 1)
    assert_nil past("ann", @begin), "nobody knows what was sent before"
  end

  def test_the_oldest_give_way
    first = Fairlead::Clock.now
    (Registry::MOST + 1).times { |number| @registry.publish("ann", number) }

    assert_nil past("ann", first)
    assert_equal Registry::MOST, past("ann", Fairlead::Clock.now).size
  end

  private

  def past(channel, time) = @registry.past(channel, time)&.map(&:last)
end
