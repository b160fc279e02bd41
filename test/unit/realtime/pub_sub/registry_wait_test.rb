# frozen_string_literal: true

require "test_helper"
require "support/fake_native"

# Subscribing threads wait for a broker without a lock.
class RegistryWaitTest < Minitest::Test
  include Fairlead::Test::Waiting

  # Confirms on the test's command.
  class Slow < Fairlead::PubSub::Engine
    attr_reader :waiting

    def initialize(gate)
      super()
      @gate = gate
      @waiting = Thread::Queue.new
    end

    def wait_for(to, _match)
      @waiting << to
      @gate.pop
    end
  end

  def setup
    @native = Fairlead::Test::FakeNative.new
    @native.run
    @gate = Thread::Queue.new
    @engine = Slow.new(@gate)
    @registry = Fairlead::Background.new(native: @native).pub_sub
    @registry.attach(@engine)
  end

  def teardown
    @gate.close
    @threads&.each(&:join)
    @native.end
  end

  def test_several_wait_at_once_also_for_the_same_channel
    @threads = %w[a a b].map { |name| Thread.new { join(name) } }
    wait_until("all of them") { @engine.waiting.size == 3 }

    assert_equal true, @registry.publish("a", "1", false)
    assert_equal 1, @registry.left("b") { 1 }
  end

  def test_a_subscription_of_the_process_waits_too_and_keeps_nobody_out
    subscription = Fairlead::PubSub::Subscription.new("own", callable: ->(_, _) {})
    @threads = [Thread.new { @registry.subscribe(subscription) }, Thread.new { join("a") }]

    wait_until("both") { @engine.waiting.size == 2 }
  end

  private

  def join(name)
    subscription = Fairlead::PubSub::Subscription.new(name)
    @registry.joined(subscription) { @native.join(Thread.current, name) }
  end
end
