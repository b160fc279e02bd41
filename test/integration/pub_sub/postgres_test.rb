# frozen_string_literal: true

require "test_helper"
require "support/broker_contract"
require "support/postgres_server"

# Fairlead::PubSub::Postgres against a real PostgreSQL.
class PostgresEngineTest < Minitest::Test
  include Fairlead::Test::BrokerContract

  def missing = Fairlead::Test::PostgresServer.missing
  def server = Fairlead::Test::PostgresServer.new
  def engine(**options) = Fairlead::PubSub.for(@server.url, **options)

  LONG = "x" * 8_000

  def test_patterns_need_an_option_and_an_error_says_so
    @peer.subscribe("n*", :redis)
    @peer.publish("news")

    assert_empty @peer.received
    assert_match(/does not permit the subscription to "n\*".*patterns: true, on all servers/, @errors.string)
  end

  def test_with_the_option_each_process_gets_all_messages
    peers = Array.new(2) { peer(patterns: true) }
    [["n*", :redis], ["a.>", :subject], ["sport", nil]].each { |to, match| peers.last.subscribe(to, match) }
    [%w[news 1], ["a.b", LONG], %w[sport 2]].each { |to, message| assert_equal true, peers.first.publish(to, message) }

    assert_equal [%w[news 1], ["a.b", LONG], %w[sport 2]], peers.last.received.reject { |name, _| name.start_with?("fence") }
  end

  def test_notifications_of_other_programs_are_ignored
    @peer.subscribe("news")
    ["", "hello", "t", "t1 9 x", "b1 1 !", "r1 1 x", "r1 1 99999999999999999999", "t1 99999999999999999999 x"].each do |payload|
      @server.query("SELECT pg_notify('fairlead:news', '#{payload}')")
    end
    @peer.publish("news", "ours")

    assert_equal [%w[news ours]], @peer.received
  end

  def test_a_long_message_that_has_gone_is_missed_and_counted
    @peer.subscribe("news")
    assert_equal true, @peer.publish("news", LONG)
    @peer.received
    @server.query("SELECT pg_notify('fairlead:news', 'r1 4 0')")
    wait_until("the loss") { @peer.engine.statistics[:missed] == 1 }

    assert_match(/a long message is not in the table.*and 1 messages for it/, @errors.string)
  end

  def test_long_messages_are_deleted_when_they_have_expired
    assert_equal true, @peer.publish("news", LONG)
    @server.query("UPDATE fairlead_messages SET created_at = now() - interval '61 seconds'")
    assert_equal true, peer.publish("news", LONG)

    assert_equal [["1"]], @server.query("SELECT count(*) FROM fairlead_messages")
  end

  def test_processes_that_need_the_table_at_the_same_time_all_publish
    peers = Array.new(8) { peer }
    peers.each { |each| each.publish("news") }

    assert_equal [true] * 8, peers.map { |each| Thread.new { each.publish("news", LONG) } }.map(&:value)
  end

  def test_a_user_without_the_table_can_publish_short_messages
    @server.query("CREATE ROLE guest LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    guest = peer(user: "guest")
    guest.subscribe("news")
    error = assert_raises(Fairlead::PubSub::Broker::Refused) { guest.publish("news", LONG) }
    assert_match(/needs the table fairlead_messages; create it and grant/, error.message)
    assert_equal true, guest.publish("news", "short")

    assert_equal [%w[news short]], guest.received
    assert_equal 0, outages
  end

  # The engine does not use the application's connections.
  def test_a_transaction_of_the_application_delays_no_message
    @peer.subscribe("news")
    application = PG.connect(@server.url)
    application.exec("BEGIN; CREATE TABLE things (id int); NOTIFY other")
    @peer.publish("news", "now")

    assert_equal [%w[news now]], @peer.received
  ensure
    application&.finish
  end

  def test_in_a_database_that_is_not_unicode_bytes_stay_what_they_are
    @server.destroy
    @server = Fairlead::Test::PostgresServer.new(encoding: "SQL_ASCII")
    ascii = peer
    ascii.subscribe("n\u00FC".b)
    MESSAGES.each { |message| assert_equal true, ascii.publish("n\u00FC".b, message), message[0, 20].inspect }

    assert_equal MESSAGES.map(&:hash), ascii.received.map { |_, message| message.hash }
  end

  def test_only_the_url_of_a_postgres_is_one_and_an_error_has_no_password
    [nil, "", "nonsense", "postgres:secret", "postgres://u:%secret@h", "postgres://u:secret@h:p/db?x=secret", 5432].each do |url|
      error = assert_raises(ArgumentError, url.inspect) { Fairlead::PubSub::Postgres.new(url) }
      refute_includes error.full_message(highlight: false).lines.grep_v(/_test\.rb/).join, "secret"
    end
    engine = Fairlead::PubSub::Postgres.new("postgres://u:secret@127.0.0.1:1/x")
    assert_equal "#<Fairlead::PubSub::Postgres PostgreSQL at 127.0.0.1:1>", engine.inspect
  end
end
