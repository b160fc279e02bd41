# frozen_string_literal: true

require "test_helper"

class PubSubSubscriptionTest < Minitest::Test
  BLOCK = ->(_, _) {}

  def test_a_name_may_come_alone_with_options_or_in_them
    [["news"], ["news", {}], ["news", nil], [{ to: "news" }], [{ channel: "news" }], [nil, nil, { to: "news" }],
     [nil, nil, { channel: "news" }]].each do |arguments|
      assert_equal ["news", nil], [parse(*arguments).name, parse(*arguments).match], arguments.inspect
    end
  end

  def test_the_name_stays_as_it_was_given_and_the_channel_is_its_bytes
    assert_equal [:été, "été".b], [parse(:été).name, parse(:été).channel]
    assert_equal "été", parse("été").name
    assert_equal [Encoding::BINARY] * 2, [parse(:été), parse("été")].map { |subscription| subscription.channel.encoding }
    assert_equal parse(:été).channel, parse("été").channel
  end

  def test_what_is_no_name_is_refused
    [nil, false, {}, { from: "news" }].each { |name| assert_raises(ArgumentError, name.inspect) { parse(name) } }
    [1, ["news"], Object.new].each { |name| assert_raises(TypeError, name.inspect) { parse(name) } }
  end

  def test_the_channels_of_the_server_are_refused_unless_a_part_of_it_asks
    error = assert_raises(ArgumentError) { parse("fairlead/pubsub/moving") }
    assert_raises(ArgumentError) { parse(:"fairlead/*", { match: :redis }) }

    assert_equal "channels that begin with fairlead/ belong to the server; choose another name", error.message
    assert_equal "fairlead/x", Fairlead::PubSub::Subscription.new("fairlead/x", owner: :cable).channel
    assert_equal "/fairlead/x", parse("/fairlead/x").channel
  end

  def test_patterns_have_several_spellings
    [{ match: :redis }, { match: :glob }, { match: true }, true].each do |options|
      assert_equal [:redis, 1], [parse("n*", options).match, parse("n*", options).native_match], options.inspect
    end
    assert_equal %i[redis redis], [parse("n*", nil, { match: :redis }).match, parse({ to: "n*", match: :redis }).match]
    assert_equal [:subject, 2], [parse("n.>", { match: :subject }).match, parse("n.>", { match: :subject }).native_match]
    [false, nil, {}, { match: nil }, { match: false }].each { |options| assert_equal 0, parse("n*", options).native_match }
  end

  def test_a_match_that_does_not_exist_is_no_exact_one
    error = assert_raises(ArgumentError) { parse("n*", { match: :regexp }) }

    assert_match(/:regexp/, error.message)
  end

  def test_options_that_are_unknown_are_ignored
    refute_predicate parse("news", { as: :text, since: 0 }), :binary?
    assert_predicate parse("news", { as: :binary, since: 0 }), :binary?
  end

  def test_a_handler_is_as_good_as_a_block
    handler = Class.new { def call(source, message); end }.new

    assert_same BLOCK, Fairlead::PubSub::Subscription.parse("news", nil, {}, BLOCK).callable
    assert_same handler, parse("news", { handler: handler }).callable
    assert_nil parse("news").callable
    assert_raises(ArgumentError) { parse("news", { handler: "no" }) }
  end

  private

  def parse(name, options = nil, keywords = {}) = Fairlead::PubSub::Subscription.parse(name, options, keywords)
end
