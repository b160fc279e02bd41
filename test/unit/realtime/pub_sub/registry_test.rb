# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_native"

class PubSubRegistryTest < Minitest::Test
  # Records its calls.
  class Notebook < Fairlead::PubSub::Engine
    attr_reader :notes

    def initialize(answer: true)
      super()
      @notes = []
      @answer = answer
    end

    def subscribe(to, match) = @notes << [:subscribe, to, match]
    def unsubscribe(to, match) = @notes << [:unsubscribe, to, match]

    def publish(to, message)
      @notes << [:publish, to, message]
      @answer
    end
  end

  class Broken < Fairlead::PubSub::Engine
    def subscribe(*) = raise("no network")
    alias unsubscribe subscribe

    def publish(*) = raise(NotImplementedError)
  end

  CALLABLE = ->(_, _) {}

  def setup
    @native = Fairlead::Test::FakeNative.new
    @errors = StringIO.new
    @background = Fairlead::Background.new(native: @native)
    @registry = @background.pub_sub
    @engine = Notebook.new
  end

  def teardown
    @native.end
  end

  # --- subscriptions of the process

  def test_a_subscription_that_is_made_before_the_start_is_made_then_also_a_second_time
    assert_equal :news, subscribe(:news)
    assert_empty @native.subscribers("news")
    start
    assert_equal [[0, CALLABLE]], @native.subscribers("news").values

    @registry.stop
    @native.subscribers("news").clear
    start
    assert_equal [[0, CALLABLE]], @native.subscribers("news").values
  end

  def test_one_that_is_made_later_is_made_at_once
    start
    subscribe("news.*", :redis)

    assert_equal [[1, CALLABLE]], @native.subscribers("news.*").values
  end

  def test_the_second_of_a_name_replaces_the_first
    other = ->(_, _) {}
    subscribe("news")
    @registry.subscribe(subscription("news", :redis, other))
    start

    assert_equal [[1, other]], @native.subscribers("news").values
  end

  def test_one_needs_something_to_call
    assert_raises(ArgumentError) { @registry.subscribe(Fairlead::PubSub::Subscription.new("news")) }
  end

  def test_one_that_is_ended_before_the_start_is_never_made
    subscribe("news")
    assert_equal true, @registry.unsubscribe(:news)
    assert_equal false, @registry.unsubscribe("news")
    start

    assert_empty @native.subscribers("news")
  end

  def test_one_that_is_ended_later_ends_at_once
    start
    subscribe("news")

    assert_equal true, @registry.unsubscribe("news")
    assert_empty @native.subscribers("news")
    assert_equal false, @registry.unsubscribe("news")
  end

  # --- channels of the server

  def test_the_application_cannot_publish_to_the_servers_own_channels_but_an_engine_passes_them_on
    start
    @registry.attach(@engine)
    @registry.subscribe(Fairlead::PubSub::Subscription.new("fairlead/heard", callable: CALLABLE, owner: :cable))
    [nil, false, @engine, Fairlead::PubSub::HISTORY].each do |engine|
      assert_raises(ArgumentError) { @registry.publish_of_app("fairlead/pubsub/moving", "x", engine) }
    end
    [nil, @engine].each { |engine| assert_raises(ArgumentError) { @registry.publish_of_app(:"fairlead/heard", "x", engine) } }

    assert @registry.publish_of_app("fairlead/heard", "x", false)
    assert @registry.publish("fairlead/unheard", "y", nil)
    assert_equal [%w[fairlead/heard x], %w[fairlead/unheard y]], (@native.published.map { |channel, message,| [channel, message] })
  end

  # --- calls of engines

  def test_an_engine_hears_of_the_first_and_of_the_last_subscriber_of_a_channel
    start
    @registry.attach(@engine)
    subscribe("news")
    join(:client, "news")
    join(:other, "news")
    @registry.unsubscribe("news")
    leave(:client, "news")
    assert_equal [[:subscribe, "news", nil]], @engine.notes

    leave(:other, "news")
    assert_equal [:unsubscribe, "news", nil], @engine.notes.last
    assert_equal 2, @engine.notes.size
  end

  def test_what_could_not_be_made_or_ended_is_not_told
    @registry.attach(@engine)
    @registry.joined(subscription("news")) { nil }
    @registry.joined(subscription("news")) { 1 }
    [false, nil, 1].each { |count| @registry.left("news") { count } }

    assert_equal [[:subscribe, "news", nil]], @engine.notes
  end

  def test_a_name_that_is_a_pattern_for_some_is_both_for_the_engine
    start
    @registry.attach(@engine)
    join(:client, "a*")
    join(:other, "a*", :redis)
    leave(:client, "a*")
    leave(:other, "a*")

    assert_equal [[:subscribe, "a*", nil], [:subscribe, "a*", :redis], [:unsubscribe, "a*", nil], [:unsubscribe, "a*", :redis]],
                 @engine.notes
  end

  def test_clients_that_are_gone_are_forgotten_unless_others_have_come_since
    start
    @registry.attach(@engine)
    %w[news sport own].each { |name| join(:client, name) }
    subscribe("own")
    %w[news sport own].each { |name| @native.leave(:client, name) }
    join(:late, "news")
    @registry.forgotten(%w[news sport own unknown])

    assert_equal [[:unsubscribe, "sport", nil]], @engine.notes.drop(3)
    assert_equal [:late], @native.subscribers("news").keys
    assert_equal [:process], @native.subscribers("own").keys
  end

  def test_an_engine_that_is_attached_hears_what_there_is_and_once
    start
    subscribe("news")
    2.times { assert_same @engine, @registry.attach(@engine) }
    assert_equal [[:subscribe, "news", nil]], @engine.notes

    @registry.reset(@engine)
    assert_equal [[:subscribe, "news", nil]] * 2, @engine.notes
  end

  def test_an_engine_that_is_detached_is_told_to_let_go_and_hears_nothing_more
    start
    @registry.attach(@engine)
    subscribe("news")
    @registry.detach(@engine)
    subscribe("sport")
    @registry.detach(@engine)

    assert_equal [[:subscribe, "news", nil], [:unsubscribe, "news", nil]], @engine.notes
  end

  def test_at_the_end_engines_let_go_of_everything_and_the_next_server_begins_anew
    start
    @registry.attach(@engine)
    subscribe("news")
    @background.stopped(:engine)
    assert_equal [[:subscribe, "news", nil], [:unsubscribe, "news", nil]], @engine.notes

    start
    assert_equal [:subscribe, "news", nil], @engine.notes.last
  end

  def test_an_engine_may_subscribe_while_it_is_told
    start
    registry = @registry
    wanted = subscription("inbox")
    @engine.define_singleton_method(:subscribe) { |to, match| super(to, match) && to == "news" && registry.subscribe(wanted) }
    @registry.attach(@engine)
    subscribe("news")

    assert_equal [[:subscribe, "news", nil], [:subscribe, "inbox", nil]], @engine.notes
  end

  def test_an_engine_that_fails_is_logged_and_does_not_keep_the_others_from_hearing
    start
    [Broken.new, @engine].each { |engine| @registry.attach(engine) }
    assert_equal "news", subscribe("news")
    assert_equal true, @registry.unsubscribe("news")
    assert_equal false, @registry.publish("news", "text", Broken.new)

    assert_equal 2, @engine.notes.size
    assert_equal %w[subscribe unsubscribe publish], @errors.string.scan(/Broken#(\w+) failed: .*(?:no network|NotImplementedError)/).flatten
  end

  # --- publishing

  def test_an_engine_is_chosen_by_name_or_the_default_carries_it
    @native.run
    @registry.publish("a", "1", nil)
    @registry.publish(:b, "2", false)
    @registry.publish("c", "3", Fairlead::PubSub::SIBLINGS)
    @registry.default = @engine
    @registry.publish("d", "4", nil)
    @registry.publish("e", "5", Fairlead::PubSub::CLUSTER)

    assert_equal [["a", "1", 0], ["b", "2", 1], ["c", "3", 2], ["e", "5", 0]], @native.published
    assert_equal [[:publish, "d", "4"]], @engine.notes
  end

  def test_the_answer_is_whether_it_is_on_its_way
    assert_equal false, @registry.publish("a", "1", nil)
    @native.run

    assert_equal true, @registry.publish("a", "1", nil)
    assert_equal true, @registry.publish("a", "1", Notebook.new(answer: 0))
    assert_equal false, @registry.publish("a", "1", Notebook.new(answer: nil))
  end

  def test_what_cannot_be_published_is_refused
    [[nil, "text"], ["news", nil], [false, "text"]].each { |to, message| assert_raises(ArgumentError) { @registry.publish(to, message, nil) } }
    [[1, "text"], ["news", 1], ["news", { a: 1 }], ["news", :text]].each do |to, message|
      assert_raises(TypeError) { @registry.publish(to, message, nil) }
    end
    assert_raises(TypeError) { @registry.publish("news", "text", Object.new) }
    assert_empty @native.published
  end

  def test_a_default_is_attached_and_gone_when_it_is_detached
    assert_same Fairlead::PubSub::CLUSTER, @registry.default
    start
    @registry.default = @engine
    subscribe("news")
    assert_equal [[:subscribe, "news", nil]], @engine.notes

    @registry.detach(@engine)
    assert_same Fairlead::PubSub::CLUSTER, @registry.default
  end

  def test_only_an_engine_is_an_engine
    %i[attach detach reset default=].each do |method|
      [nil, Object.new, Notebook].each { |other| assert_raises(TypeError) { @registry.public_send(method, other) } }
    end
  end

  def test_an_engine_that_overrides_nothing_carries_nothing
    engine = Fairlead::PubSub::Engine.new
    start
    @registry.attach(engine)

    assert_equal "news", subscribe("news")
    assert_equal false, @registry.publish("news", "text", engine)
    assert_empty @errors.string
  end

  private

  def start
    @native.run unless @native.running?
    @background.started(:engine, Fairlead::EventLog.new(quiet: true, errors: @errors))
  end

  def subscription(name, match = nil, callable = CALLABLE) = Fairlead::PubSub::Subscription.new(name, match: match, callable: callable)

  def subscribe(...) = @registry.subscribe(subscription(...))

  def join(who, name, match = nil)
    wanted = subscription(name, match)
    @registry.joined(wanted) { @native.join(who, name, wanted.native_match) }
  end

  def leave(who, name) = @registry.left(name) { @native.leave(who, name) }
end
