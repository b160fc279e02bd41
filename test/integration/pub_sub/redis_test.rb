# frozen_string_literal: true

require "test_helper"
require "support/broker_contract"
require "support/redis_server"

begin
  require "redis"
rescue LoadError
  nil # a Ruby without it
end

# Fairlead::PubSub::Redis against a real Redis.
class RedisEngineTest < Minitest::Test
  include Fairlead::Test::BrokerContract

  def missing = Fairlead::Test::RedisServer.missing
  def server = Fairlead::Test::RedisServer.new
  def engine(**options) = Fairlead::PubSub.for(@server.url, **options)

  def test_what_matches_several_subscriptions_comes_once_however_often_it_is_repeated
    @peer.subscribe("news.sport")
    %w[news.* n* *sport].each { |pattern| @peer.subscribe(pattern, :redis) }
    3.times { @peer.publish("news.sport", "same") }
    @peer.publish("news.weather", "same")
    @peer.unsubscribe("news.sport")
    @peer.subscribe("*.sport", :redis)
    2.times { @peer.publish("news.sport", "same") }

    assert_equal [*%w[news.sport] * 3, "news.weather", *%w[news.sport] * 2], @peer.received.map(&:first)
  end

  def test_globs_are_those_of_redis
    ["a?c", "x[1-3]", "y[^1]", 'z\*'].each { |pattern| @peer.subscribe(pattern, :redis) }
    %w[ac abbc x4 y1 zz abc x2 y2 z*].each { |name| @peer.publish(name) }

    assert_equal %w[abc x2 y2 z*], @peer.received.map(&:first)
  end

  def test_subjects_get_what_they_match
    ["news.*.sport", "all.>", "odd[1]?.*"].each { |subject| @peer.subscribe(subject, :subject) }
    %w[other oddly news.de.sport all.of.it odd[1]?.x odd1y.x].each { |name| @peer.publish(name) }

    assert_equal %w[news.de.sport all.of.it odd[1]?.x], @peer.received.map(&:first)
  end

  def test_a_subscription_that_ends_leaves_one_alone_that_is_the_same_for_redis
    @peer.subscribe("a.*", :redis)
    2.times { @peer.subscribe("a.*", :subject) }
    @peer.unsubscribe("a.*", :subject)
    @peer.publish("a.b")
    assert_equal [["a.b", "1"]], @peer.received

    @peer.unsubscribe("a.*", :redis)
    wait_until("no pattern in Redis") { @server.patterns.zero? }
  end

  def test_only_the_url_of_a_redis_is_one
    [nil, "", "nonsense", "http://127.0.0.1", "redis://a b", 6379].each do |url|
      assert_raises(ArgumentError, url.inspect) { Fairlead::PubSub::Redis.new(url) }
    end
  end

  def test_the_password_is_not_shown
    engine = Fairlead::PubSub::Redis.new("redis://user:secret@127.0.0.1:1")

    assert_equal "#<Fairlead::PubSub::Redis Redis at redis://127.0.0.1:1>", engine.inspect
  end
end
