# frozen_string_literal: true

require "test_helper"

# With a server in this process, and without one.
class CableSubscribersTest < Minitest::Test
  include Fairlead::Test::Waiting

  # Remembers its calls.
  class Owner
    attr_reader :calls

    def initialize = @calls = Thread::Queue.new
    def call_back(callback, message) = @calls << [callback, message]
    def call_back_later(callback, message) = @calls << [callback, message, :later]
  end

  def setup
    @subscribers = Fairlead::Cable::Subscribers.new
    @one, @two = Array.new(2) { Owner.new }
  end

  def teardown
    [@one, @two].each { |owner| @subscribers.remove_all(owner) }
    @server&.stop
  end

  def test_without_a_server_each_callback_of_the_channel_is_called_once
    @subscribers.add("news", @one, :a)
    @subscribers.add("news", @one, :b)
    @subscribers.add("news", @two, :a)
    @subscribers.add("other", @two, :c)
    @subscribers.deliver_here("news", "hello")

    assert_equal [[:a, "hello", :later], [:b, "hello", :later]], calls(@one)
    assert_equal [[:a, "hello", :later]], calls(@two)
  end

  def test_with_a_server_published_messages_call_each_callback_once_and_in_order
    serve
    @subscribers.add("news", @one, :a)
    @subscribers.add("news", @two, :b)
    @subscribers.deliver_here("news", "this is not published")
    50.times { |number| Fairlead::Cable.broadcast("news", number.to_s) }

    assert_equal (0...50).map { |number| [:a, number.to_s] }, calls(@one, 50)
    assert_equal (0...50).map { |number| [:b, number.to_s] }, calls(@two, 50)
  end

  def test_a_subscription_from_before_the_server_gets_its_messages
    @subscribers.add("news", @one, :a)
    serve
    Fairlead::Cable.broadcast("news", "hello")

    assert_equal [[:a, "hello"]], calls(@one, 1)
  end

  def test_the_last_callback_ends_the_subscription_of_the_process
    serve
    @subscribers.add("news", @one, :a)
    @subscribers.add("news", @two, :a)
    @subscribers.remove("news", @one, :a)
    @subscribers.remove("news", @one, :a)
    Fairlead::Cable.broadcast("news", "hello")
    assert_equal [[:a, "hello"]], calls(@two, 1)
    before = subscriptions
    @subscribers.remove("news", @two, :a)

    assert_equal before - 1, subscriptions
    assert_empty @one.calls
  end

  # As a restart of Action Cable: the new adapter may subscribe before the old one is shut down.
  def test_the_end_of_one_owner_leaves_the_channels_of_another
    serve
    @subscribers.add("news", @one, :a)
    @subscribers.add("news", @two, :a)
    @subscribers.remove_all(@one)
    Fairlead::Cable.broadcast("news", "hello")

    assert_equal [[:a, "hello"]], calls(@two, 1)
    assert_empty @one.calls
  end

  def test_a_subscription_of_the_application_to_the_same_channel_stays
    serve
    heard = Owner.new
    Fairlead.subscribe("news") { |_, message| heard.call_back(:block, message) }
    @subscribers.add("news", @one, :a)
    Fairlead.publish("news", "both")
    assert_equal [[[:block, "both"]], [[:a, "both"]]], [calls(heard, 1), calls(@one, 1)]
    @subscribers.remove("news", @one, :a)
    Fairlead.publish("news", "only the application")

    assert_equal [[:block, "only the application"]], calls(heard, 1)
    @subscribers.add("news", @one, :a)
    Fairlead.unsubscribe("news")
    Fairlead.publish("news", "only Action Cable")
    assert_equal [[:a, "only Action Cable"]], calls(@one, 1)
    assert_empty heard.calls
  ensure
    Fairlead.unsubscribe("news")
  end

  private

  def serve = @server = Fairlead::Server.new(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0", threads: [1, 2]).start

  def subscriptions = Fairlead.stats[:engines].sum { |engine| engine[:subscriptions] }

  # Waits for +count+ calls.
  def calls(owner, count = owner.calls.size) = Array.new(count) { wait_until("a call") { !owner.calls.empty? && owner.calls.pop } }
end
