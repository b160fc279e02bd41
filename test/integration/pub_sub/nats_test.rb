# frozen_string_literal: true

require "test_helper"
require "support/broker_contract"
require "support/nats_server"

# Fairlead::PubSub::NATS against a real NATS. The gem is not in Debian; `ruby -I` with a checkout of it is enough.
class NATSEngineTest < Minitest::Test
  include Fairlead::Test::BrokerContract

  def missing = Fairlead::Test::NATSServer.missing
  def server = Fairlead::Test::NATSServer.new
  def engine(**options) = Fairlead::PubSub.for(@server.url, **options)

  def teardown
    @foreign&.close
    super
  end

  def test_subjects_get_what_they_match
    ["news.*.sport", "all.>", "odd[1]?.*", "a.*.b"].each { |subject| @peer.subscribe(subject, :subject) }
    names = %w[other oddly news.de.sport news.sport all.of.it all odd[1]?.x odd1y.x a..b]
    names.each { |name| @peer.publish(name) }

    assert_equal %w[news.de.sport all.of.it odd[1]?.x a..b], @peer.received.map(&:first)
  end

  # NATS has no globs: a process gets more messages than match, and drops the others.
  def test_globs_get_at_least_what_they_match
    ["a?c", "news.s*", "x[1-3].y"].each { |pattern| @peer.subscribe(pattern, :redis) }
    names = ["abc", "news.sport", "x2.y", "a c"]
    names.each { |name| @peer.publish(name) }

    assert_equal names, @peer.received.map(&:first)
  end

  def test_what_matches_several_subscriptions_comes_once_however_often_it_is_repeated
    @peer.subscribe("news.sport")
    ["news.*", "*.sport", ">"].each { |pattern| @peer.subscribe(pattern, :subject) }
    @peer.subscribe("n*", :redis)
    3.times { @peer.publish("news.sport", "same") }
    @peer.publish("news.weather", "same")
    @peer.unsubscribe("news.sport")
    2.times { @peer.publish("news.sport", "same") }

    received = @peer.received.reject { |name, _| name.start_with?("fence") }
    assert_equal [*%w[news.sport] * 3, "news.weather", *%w[news.sport] * 2], received.map(&:first)
  end

  def test_messages_of_other_programs_arrive_once
    @peer.subscribe("news")
    @peer.subscribe("news", :subject)
    @peer.subscribe(">", :subject)
    ["fairlead.news", "fairlead.%4", "fairlead.%%x", "other"].each { |subject| foreign.publish(subject, "plain") }
    foreign.flush

    assert_equal [%w[news plain], ["%4", "plain"]], @peer.received.reject { |name, _| name.start_with?("fence") }
  end

  def test_a_message_above_the_limit_of_nats_is_refused_and_no_other
    @peer.subscribe("news")
    error = assert_raises(Fairlead::PubSub::Broker::Refused) { @peer.publish("news", "x" * 1_048_577) }
    assert_match(/1048577 bytes, and NATS takes 1048576 \(max_payload\)/, error.message)
    assert_equal true, @peer.publish("news", "x" * 1_048_576)

    assert_equal [1_048_576], @peer.received.map { |_, message| message.bytesize }
    assert_equal [0, 1], [outages, @peer.engine.statistics[:refused]]
  end

  def test_a_subject_that_is_not_permitted_keeps_no_other_out
    permissions = 'publish: { deny: "fairlead.secret" }, subscribe: { deny: "fairlead.secret" }'
    restart("authorization { users: [ { user: u, password: p, permissions: { #{permissions} } } ] }")
    guest = peer(user: "u", pass: "p")
    %w[news secret].each { |name| guest.subscribe(name) }
    assert_equal true, guest.publish("news", "1")
    assert_raises(Fairlead::PubSub::Broker::Refused) { guest.publish("secret", "1") }
    assert_equal true, guest.publish("news", "2")

    assert_equal [%w[news 1], %w[news 2]], guest.received
    assert_equal 1, @errors.string.scan(/does not permit the subscription to "fairlead.secret"/).size
    assert_equal 0, outages
  end

  def test_a_wrong_password_is_an_outage_that_the_log_explains
    restart("authorization { user: u, password: p }")
    guest = peer(user: "u", pass: "wrong")
    guest.engine.subscribe("news", nil)
    assert_equal false, guest.publish("news")

    wait_until("the reason") { @errors.string.match?(/cannot be reached.*Authorization Violation/) }
    refute_includes @errors.string, "wrong"
  end

  def test_the_url_is_one_or_several_and_an_error_has_no_password
    [nil, "", "nonsense", "http://h", "nats:secret", "nats://a,secret", "nats://u:secret@b@c", 4222].each do |url|
      error = assert_raises(ArgumentError, url.inspect) { Fairlead::PubSub::NATS.new(url) }
      refute_includes error.full_message(highlight: false).lines.grep_v(/_test\.rb/).join, "secret"
    end
    assert_equal "NATS at nats://a:1,nats://b:2", Fairlead::PubSub::NATS.new("nats://u:p@a:1, nats://b:2").name
    assert_raises(ArgumentError) { Fairlead::PubSub::NATS.new("nats://a", prefix: "a.>") }
  end

  # --- history

  def test_the_history_of_a_channel_is_replayed_from_a_position
    keeper = peer(history: true)
    assert_equal true, keeper.publish("news", "0")
    start = keeper.engine.position("news")
    NAMES.each { |name| assert_equal true, keeper.publish(name, "1"), name[0, 20].inspect }
    assert_equal true, keeper.publish("news", "\xFF\r\n")
    messages = keeper.engine.history("news", start)

    assert_equal ["\xFF\r\n".b], messages.map(&:first)
    assert_equal [], keeper.engine.history("news", messages.last.last)
    NAMES.each { |name| assert_equal ["1"], keeper.engine.history(name, start).map(&:first), name[0, 20].inspect }
    assert_equal [], keeper.engine.history("none", start)
  end

  def test_a_position_that_is_too_old_or_of_another_stream_is_none
    keeper = peer(history: { messages: 3 })
    keeper.publish("other")
    start = keeper.engine.position
    3.times { keeper.publish("news") }

    assert_nil keeper.engine.history("news", start)
    assert_equal [], keeper.engine.history("other", start)
    ["", "x", "1.2", "#{start}0", start.sub(/\A./, "z")].each { |position| assert_nil keeper.engine.history("news", position), position }
  end

  def test_with_a_history_messages_still_arrive_once
    keeper = peer(history: true)
    keeper.subscribe("news")
    keeper.subscribe(">", :subject)
    Array.new(4) { |thread| Thread.new { 20.times { |number| keeper.publish("news", "#{thread} #{number}") } } }.each(&:join)

    assert_equal 80, keeper.received.count { |name, _| name == "news" }
    assert_equal 80, keeper.engine.statistics[:published] - 1
  end

  def test_history_needs_its_option
    assert_raises(Fairlead::PubSub::Broker::Refused) { @peer.engine.position("news") }
  end

  private

  def foreign = @foreign ||= ::NATS.connect(@server.url)

  def restart(options)
    @server.destroy
    @server = Fairlead::Test::NATSServer.new(options)
  end
end
