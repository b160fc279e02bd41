# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_native"
require "support/redis_relay"
require "support/redis_server"

begin
  require "redis"
rescue LoadError
  nil # a Ruby without it
end

# Fairlead::PubSub::Redis behind a network that delays or drops bytes, or cuts connections.
class RedisNetworkTest < Minitest::Test
  include Fairlead::Test::Waiting

  CHANNELS = 300

  def setup
    skip Fairlead::Test::RedisServer.missing if Fairlead::Test::RedisServer.missing

    @redis = Fairlead::Test::RedisServer.new
    @relay = Fairlead::Test::RedisRelay.new(@redis.socket)
    @errors = StringIO.new
    @output = StringIO.new
    Fairlead::Background.current.started(self, Fairlead::EventLog.new(output: @output, errors: @errors))
    @engines = []
    @engine, @inbox = engine(@relay.url)
    @registry = registry
  end

  def teardown
    @engines&.each(&:close)
    @native&.end
    Fairlead::Background.current.stopped(self)
    @relay&.close
    @redis&.destroy
  end

  def test_a_subscriber_whose_connection_goes_silent_is_heard_of_and_connects_again
    subscribe("news")
    @relay.silence_subscribers
    wait_until("a line in the log") { outages.positive? }
    wait_until("its return") { @output.string.include?("is back") }

    assert_equal true, @engine.publish("news", "again")
    wait_until("the message") { !@inbox.empty? }
    assert_equal %w[news again], @inbox.pop
    assert_match(/has not answered for 1.0 s/, @errors.string)
  end

  def test_a_connection_on_which_there_is_nothing_to_say_stays
    subscribe("news")
    wait_until("several signs of life", seconds: 30) { @relay.pings >= 3 }

    assert_equal true, @engine.publish("news", "still")
    wait_until("the message") { !@inbox.empty? }
    assert_equal 0, outages
  end

  # There was no request in this time, so none is overdue.
  def test_a_thread_that_keeps_the_lock_of_ruby_for_long_ends_no_connection
    listener, inbox = engine(@redis.url)
    listener.subscribe("news", nil)
    listener.wait_for("news", nil)
    3.times do
      keep_lock(4)
      @redis.command("PUBLISH", "news", "meanwhile")
      wait_until("the message") { !inbox.empty? }
      inbox.clear
    end

    assert_equal 0, outages
  end

  def test_a_user_who_may_not_ping_can_publish_and_receive
    @redis.command("ACL", "SETUSER", "quiet", "on", ">secret", "allchannels", "+@all", "-ping")
    listener, inbox = engine(@redis.url, username: "quiet", password: "secret")
    listener.subscribe("news", nil)
    listener.wait_for("news", nil)
    assert_equal true, listener.publish("news", "1")
    sleep 2.5 # more than the interval between two PINGs
    @redis.kill
    wait_until("an outage") { !listener.publish("news", "2") }
    @redis.start
    @redis.command("ACL", "SETUSER", "quiet", "on", ">secret", "allchannels", "+@all", "-ping")

    wait_until("its return", seconds: 30) { listener.publish("news", "3") }
    wait_until("the message") { inbox.size.positive? && inbox.pop.last == "3" }
    refute_match(/permit/, @errors.string)
  end

  def test_those_who_subscribe_on_a_silent_connection_wait_side_by_side
    subscribe("news")
    @relay.silence_subscribers
    seconds = seconds_of { Array.new(20) { |number| Thread.new { subscribe("channel-#{number}") } }.each(&:join) }

    assert_operator seconds, :<, 10 # 20 one after the other
  end

  def test_those_who_subscribe_to_many_channels_delay_nobody
    subscribe("news")
    @relay.delay = 0.02
    alone = seconds_of { subscribe("alone") }
    done = 0
    others = Array.new(20) { |thread| Thread.new { CHANNELS.times { |number| subscribe("many-#{thread}-#{number}").then { done += 1 } } } }
    wait_until("some of them", seconds: 60) { done > 20 }
    together = seconds_of { subscribe("other") }

    assert(others.all?(&:alive?))
    assert_operator together / alone, :<, 6 # 20 one after the other
  ensure
    others&.each { |thread| thread.kill.join }
  end

  def test_threads_publish_side_by_side
    @engine.publish("news", "first")
    @relay.delay = 0.05
    alone = seconds_of { @engine.publish("news", "alone") }
    together = seconds_of { Array.new(20) { Thread.new { @engine.publish("news", "1") } }.each(&:join) }

    assert_operator together / alone, :<, 10 # 20 one after the other
  end

  def test_a_message_that_redis_has_got_is_not_sent_again
    listener, inbox = engine(@redis.url)
    listener.subscribe("news", nil)
    listener.wait_for("news", nil)
    assert_equal true, @engine.publish("news", "first")
    @relay.cut = "PUBLISH"

    assert_equal false, @engine.publish("news", "once")
    wait_until("publishing") { @engine.publish("news", "last") }
    received = []
    received << inbox.pop until received.include?(%w[news last])
    assert_equal 1, received.count(%w[news once])
  end

  def test_when_redis_returns_what_is_published_with_success_arrives
    subscribe("news")
    [0.5, 1, 2].each do |seconds|
      @redis.kill
      away_until = monotonic + seconds
      wait_until("a while") { monotonic > away_until }
      @redis.start
      number = 0
      wait_until("publishing") { @engine.publish("news", (number += 1).to_s) }

      wait_until("the published number #{number}") { !@inbox.empty? }
      assert_equal ["news", number.to_s], @inbox.pop
    end
  end

  def test_a_channel_that_redis_does_not_permit_keeps_no_other_out
    @redis.command("ACL", "SETUSER", "default", "resetchannels", "&ok-*")
    Array.new(5) { |number| Thread.new { subscribe("ok-#{number}") } }.push(Thread.new { subscribe("secret") }).each(&:join)
    5.times { |number| assert_equal true, @engine.publish("ok-#{number}", "1") }
    assert_equal false, @registry.publish("secret", "1", @engine)
    assert_equal true, @engine.publish("ok-0", "2")
    wait_until("the messages") { @inbox.size == 6 }

    assert_equal 1, @errors.string.scan(/does not permit the subscription to "secret"/).size
    assert_equal 0, outages
  end

  private

  def engine(url, **options)
    inbox = Thread::Queue.new
    engine = Fairlead::PubSub::Redis.new(url, **options)
    engine.define_singleton_method(:deliver) { |channel, message| inbox << [channel, message] }
    @engines << engine
    [engine, inbox]
  end

  # Keeps the GVL for about so many seconds: one computation in C, which lets no other thread run.
  def keep_lock(seconds)
    modulus = (1 << 8192) - 1
    compute = ->(bits) { (modulus / 3).pow((1 << bits) - 1, modulus) }
    compute.call((500 * seconds / seconds_of { compute.call(500) }).ceil)
  end

  # Like Client#subscribe.
  def registry
    @native = Fairlead::Test::FakeNative.new
    background = Fairlead::Background.new(native: @native)
    background.instance_variable_set(:@log, Fairlead::Background.current.log)
    @native.run
    background.pub_sub.tap { |registry| registry.attach(@engine) }
  end

  def subscribe(name)
    subscription = Fairlead::PubSub::Subscription.new(name)
    @registry.joined(subscription) { @native.join(Thread.current, name) }
  end

  def outages = @errors.string.scan("cannot be reached").size
end
