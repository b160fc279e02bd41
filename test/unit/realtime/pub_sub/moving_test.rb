# frozen_string_literal: true

require "test_helper"
require "support/fake_native"

# The channels of a worker that ends, for brokers.
class PubSubMovingTest < Minitest::Test
  # Records its calls.
  class Notebook < Fairlead::PubSub::Engine
    attr_reader :notes

    def initialize
      super
      @notes = []
    end

    def subscribe(to, match) = @notes << [:subscribe, to, match]
    def unsubscribe(to, match) = @notes << [:unsubscribe, to, match]
    def publish(*) = true
  end

  Moving = Fairlead::PubSub::Moving

  def setup
    @native = Fairlead::Test::FakeNative.new
    @background = Fairlead::Background.new(native: @native)
    @registry = @background.pub_sub
    @engine = Notebook.new
  end

  def teardown
    @background.stopped(:engine)
    @native.end
  end

  def test_a_worker_that_ends_names_its_channels_and_another_one_subscribes
    start
    @registry.attach(@engine)
    join("news\xFF".b)
    join("orders.*", match: :subject)
    @background.draining(:engine, migrate: true)
    (channel, list, scope), = @native.published

    assert_equal [Moving::CHANNEL, Fairlead::PubSub::SIBLINGS.number], [channel, scope]
    @engine.notes.clear
    @registry.forgotten(["news\xFF".b, "orders.*"].each { |name| @native.leave(:client, name) })
    hear(list)
    assert_equal [[:unsubscribe, "news\xFF".b, nil], [:unsubscribe, "orders.*", :subject],
                  [:subscribe, "news\xFF".b, nil], [:subscribe, "orders.*", :subject]], @engine.notes
  end

  def test_channels_without_subscribers_are_forgotten_after_a_while
    timers = []
    @background.timers.define_singleton_method(:after) { |seconds, block| timers << [seconds, block] }
    start
    @registry.attach(@engine)
    hear(Fairlead::Handover::Fields.pack(Moving::FORMAT, [[0, "old"], [0, "kept"], [9, "unknown"]]))
    join("kept")
    @engine.notes.clear
    timers.each { |seconds, block| seconds == Moving::TIME && block.call }

    assert_equal [[:unsubscribe, "old", nil]], @engine.notes
  end

  def test_without_a_broker_nobody_is_told
    start
    join("news")
    @background.draining(:engine, migrate: true)

    assert_empty @native.published
    assert_empty @native.subscribers(Moving::CHANNEL)
  end

  private

  def start
    @native.run
    @background.started(:engine, nil)
  end

  def join(name, match: nil)
    subscription = Fairlead::PubSub::Subscription.new(name, match: match)
    @registry.joined(subscription) { @native.join(:client, name) }
  end

  # Has this process hear what another worker says.
  def hear(list) = @native.subscribers(Moving::CHANNEL).each_value { |_, callable| callable.call(Moving::CHANNEL, list) }
end
