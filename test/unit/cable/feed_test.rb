# frozen_string_literal: true

require "test_helper"

# The processes of a server that hear the same broadcasts from a broker. The test decides which of them leads.
class CableFeedTest < Minitest::Test
  include Fairlead::Test::Waiting

  # The history of a server.
  class Native
    attr_reader :published

    def initialize
      @published = []
      @leader = nil
    end

    attr_accessor :leader, :progress, :noted

    def of(process) = One.new(self, process)

    # The same, as one process sees it.
    One = Struct.new(:all, :process) do
      def lead = all.leader == process

      def stop_leading
        all.leader = nil
      end

      def publish(channel, payload, scope)
        raise ArgumentError unless scope == Fairlead::PubSub::HISTORY.number

        all.published << [channel, payload]
      end

      def progress = [all.progress || 0, 0.0, all.noted || 0]

      def note_progress(number)
        all.progress = number
        all.noted = all.published.size
      end

      def history(channel, since, *)
        all.published.drop(since).filter_map { |name, payload| [0, 0.0, payload] if name == channel }
      end
    end
  end

  class Broker < Fairlead::PubSub::Broker
    attr_reader :sent

    def initialize
      super("the broker")
      @sent = []
    end

    def subscribe(*) = true
    def unsubscribe(*) = true
    def wait_for(*) = nil
    def reachable? = true
    def publish(channel, message) = @sent << [channel, message]
    def receive(message) = deliver(Fairlead::Cable::Feed::CHANNEL, message)
  end

  def setup
    @native = Native.new
    @brokers = Array.new(2) { Broker.new }
    @feeds = @brokers.each_with_index.map { |broker, index| Fairlead::Cable::Feed.new(broker, native: @native.of(index)) }
    @feeds.each(&:start)
  end

  def teardown
    @feeds.each(&:stop)
  end

  def test_only_the_leader_publishes
    lead(1)
    hear("news", "a")
    hear("n\u00FC.\xFF", "\xFF\0")

    assert_equal [%w[news a], ["n\u00FC.\xFF".b, "\xFF\0".b]], @native.published
  end

  def test_the_next_leader_publishes_what_is_missing_in_order_and_nothing_twice
    lead(0)
    %w[a b].each { |payload| hear("news", payload) }
    hear("sport", "a")
    @native.leader = nil
    %w[a c].each { |payload| hear("news", payload, to: [1]) } # the leader has ended
    hear("sport", "a", to: [1])
    lead(1)
    hear("news", "d", to: [1])

    assert_equal %w[a b a c d], payloads("news")
    assert_equal %w[a a], payloads("sport")
  end

  def test_a_message_that_comes_late_to_the_next_leader_is_not_published_twice
    @feeds[1].instance_variable_set(:@listens_since, Fairlead::Clock.now - 60)
    lead(0)
    hear("news", "a")
    hear("news", "b", to: [0])
    late = [@last]
    hear("news", "c", to: [0])
    late << @last
    lead(1)
    late.each { |message| @brokers[1].receive(message) }
    hear("news", "d", to: [1])

    assert_equal %w[a b c d], payloads("news")
  end

  def test_a_message_is_published_once_if_its_leader_ends_before_the_note
    lead(0)
    hear("news", "a")
    hear("news", "a")
    hear("news", "b", to: [1])
    @native.published << %w[news b]
    %w[b c].each { |payload| hear("news", payload, to: [1]) }
    lead(1)

    assert_equal %w[a a b b c], payloads("news")
  end

  def test_messages_from_before_the_first_leader_are_published
    %w[a b].each { |payload| hear("news", payload) }
    lead(0)

    assert_equal %w[a b], payloads("news")
  end

  def test_a_leader_that_stops_makes_room
    lead(0)
    @feeds[0].stop

    assert_nil @native.leader
    lead(1)
    hear("news", "a", to: [1])
    assert_equal %w[a], payloads("news")
  end

  def test_a_long_wait_for_a_leader_keeps_the_newest_messages
    size = Fairlead::Cable::Feed::MOST_BYTES / 4
    %w[a b c d e].each { |letter| hear("news", letter * size) }
    lead(0)

    assert_equal %w[b c d e], payloads("news").map { |payload| payload[0] }
  end

  def test_texts_of_other_programs_are_ignored
    lead(0)
    ["", "x", "abc", "\0\0\0\0\0\0\0\1\0\0\0\5abc", "\0\0\0\0\0\0\0\1\xFF\xFF\xFF\xFFabc"].each { |text| @brokers[0].receive(text.b) }

    assert_empty @native.published
  end

  private

  def lead(process)
    @native.leader = process
    wait_until("leadership") { @feeds[process].leads? }
  end

  # A broadcast arrives from the broker.
  def hear(channel, payload, to: [0, 1])
    @feeds[0].broadcast(channel, payload)
    @last = message = @brokers[0].sent.pop.last
    to.each { |process| @brokers[process].receive(message) }
  end

  def payloads(channel) = @native.published.select { |name, _| name == channel }.map(&:last)
end
