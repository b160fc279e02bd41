# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/redis_server"

begin
  require "redis"
rescue LoadError
  nil # a Ruby without it
end

# Fairlead::PubSub::Redis against a real Redis.
class RedisEngineTest < Minitest::Test
  include Fairlead::Test::Waiting

  # An engine like the one of another process.
  class Peer
    attr_reader :engine, :inbox

    def initialize(url)
      @inbox = inbox = Thread::Queue.new
      @engine = Fairlead::PubSub::Redis.new(url)
      @engine.define_singleton_method(:deliver) { |channel, message| inbox << [channel, message] }
      @fence = "fence-#{object_id}"
    end

    def subscribe(to, match = nil)
      engine.subscribe(to, match)
      engine.wait_for(to, match)
    end

    def unsubscribe(to, match = nil) = engine.unsubscribe(to, match)
    def publish(to, message = "1") = engine.publish(to, message)

    # Returns the messages since the last call, including everything published before this one.
    def received
      subscribe(@fence)
      Waiting.wait_until("publishing") { publish(@fence, "") }
      Waiting.wait_until("the fence") { (@taken ||= []).concat(Array.new(inbox.size) { inbox.pop }).include?([@fence, ""]) }
      @taken.reject { |name, _| name == @fence }.tap { @taken = nil }
    end
  end

  Waiting = Fairlead::Test::Waiting

  def setup
    skip Fairlead::Test::RedisServer.missing if Fairlead::Test::RedisServer.missing

    @redis = Fairlead::Test::RedisServer.new
    @errors = StringIO.new
    @output = StringIO.new
    @threads = Thread.list
    Fairlead::Background.current.started(self, Fairlead::EventLog.new(output: @output, errors: @errors))
    @peers = []
    @peer = peer
  end

  def teardown
    @peers&.each { |peer| peer.engine.close }
    Fairlead::Background.current.stopped(self)
    @redis&.destroy
  end

  def test_what_is_published_comes_back_once_to_each_process_that_subscribed
    other = peer
    [@peer, other].each { |each| each.subscribe("news") }
    other.subscribe("sport")
    assert_equal true, @peer.publish("news", "first")
    other.publish("sport", "second")
    other.publish("news", "third")

    assert_equal [%w[news first], %w[news third]], @peer.received
    assert_equal [%w[news first], %w[sport second], %w[news third]], other.received
  end

  def test_what_is_published_right_after_subscribing_comes_back
    100.times do |number|
      @peer.subscribe("channel-#{number}")
      @peer.publish("channel-#{number}")
    end

    assert_equal (0...100).map { |number| "channel-#{number}" }, @peer.received.map(&:first)
  end

  def test_bytes_stay_what_they_are_in_names_and_messages
    name = "n\xC3\xBC\xFF\r\n".b
    message = (0..255).to_a.pack("C*")
    @peer.subscribe(name)
    @peer.publish(name, message)
    received = @peer.received

    assert_equal [[name, message]], received
    assert_equal [Encoding::BINARY] * 2, received.flatten.map(&:encoding)
  end

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
    wait_until("no pattern in Redis") { @redis.patterns.zero? }
  end

  def test_a_thousand_channels_come_and_go
    names = Array.new(1000) { |number| "channel-#{number}" }
    names.each { |name| @peer.subscribe(name) }
    assert_equal names.size, @redis.channels
    names.each { |name| @peer.unsubscribe(name) }

    wait_until("no other channel in Redis") { @redis.channels.zero? }
  end

  def test_threads_may_do_everything_at_once
    names = Array.new(8) { |number| "thread-#{number}" }
    threads = names.map do |name|
      Thread.new do
        20.times do
          @peer.subscribe(name)
          @peer.publish(name)
          @peer.unsubscribe(name)
        end
      end
    end
    threads.each(&:join)

    assert_equal names.to_h { |name| [name, 20] }, @peer.received.map(&:first).tally
  end

  # --- without Redis

  def test_while_redis_is_away_publishing_fails_at_once_and_is_logged_once
    @peer.subscribe("news")
    @redis.kill
    seconds = seconds_of { 1000.times { assert_equal false, @peer.publish("news") } }

    assert_operator seconds, :<, Fairlead::PubSub::Redis::TIMEOUT
    wait_until("a line in the log") { outages.positive? }
    assert_equal 1, outages
  end

  def test_when_redis_is_back_it_subscribes_again_to_what_is_wanted_by_then
    %w[news old].each { |name| @peer.subscribe(name) }
    @redis.kill
    @peer.publish("news", "lost")
    @peer.subscribe("new")
    @peer.unsubscribe("old")
    @redis.start
    wait_until("its return") { @output.string.include?("Redis at #{@redis.url} is back") }
    %w[old news new].each { |name| @peer.publish(name, "again") }

    assert_equal [%w[news again], %w[new again]], @peer.received
    assert_equal 1, outages
  end

  def test_a_redis_that_is_not_there_yet_is_waited_for
    @redis.kill
    assert_operator seconds_of { @peer.subscribe("news") }, :<, Fairlead::PubSub::Redis::TIMEOUT
    @redis.start
    wait_until("the subscription") { @redis.subscribers("news") == 1 }
    wait_until("publishing") { @peer.publish("news") }

    assert_equal [%w[news 1]], @peer.received
  end

  def test_a_redis_that_stands_still_holds_up_its_publishers_once
    assert_equal true, @peer.publish("news")
    @redis.pause
    threads = Array.new(5) { Thread.new { @peer.publish("news") } }
    seconds = seconds_of { assert_equal [false] * 5, threads.map(&:value) }

    assert_operator seconds, :<, Fairlead::PubSub::Redis::TIMEOUT * 3
    assert_equal 1, outages
  ensure
    @redis&.resume
  end

  def test_a_connection_that_has_broken_unnoticed_costs_no_message
    assert_equal true, @peer.publish("news")
    @redis.kill
    @redis.start

    assert_equal true, @peer.publish("news")
    assert_equal 0, outages
  end

  # --- processes and ends

  def test_a_fork_has_connections_of_its_own_and_leaves_those_of_its_parent_alone
    @peer.subscribe("news")
    pid = fork do
      @peer.subscribe("reply")
      @peer.publish("news", "from the child")
      @peer.publish("reply", "to itself")
      exit!(@peer.received == [["reply", "to itself"]] ? 0 : 1)
    end

    assert_equal 0, Process.wait2(pid).last.exitstatus
    @peer.publish("news", "from the parent")
    assert_equal [["news", "from the child"], ["news", "from the parent"]], @peer.received
  end

  def test_closing_ends_threads_and_connections_until_it_is_used_again
    @peer.subscribe("news")
    @peer.received
    @peer.engine.close
    wait_until("the end of its threads") { (Thread.list - @threads).empty? }
    wait_until("the end of its connections") { @redis.channels.zero? }

    @peer.subscribe("news")
    @peer.publish("news", "second")
    assert_equal [%w[news second]], @peer.received
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

  private

  def peer
    Peer.new(@redis.url).tap { |peer| @peers << peer }
  end

  def outages = @errors.string.scan("Redis at #{@redis.url} cannot be reached").size
end
