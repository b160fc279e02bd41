# frozen_string_literal: true

require "test_helper"

# Several processes that receive the broadcasts of a broker, one of which leads.
class CableRelayTest < Minitest::Test
  Broker = Struct.new(:receiver, :published) do
    def publish(*message) = (self.published = message)
  end

  # The extension in one process of a server: +server+ has the leader and the history that all share.
  Process = Struct.new(:server, :name) do
    def lead = (server[:leader] ||= name) == name
    def publish(channel, payload, scope) = server[:history] << [channel, payload, scope]

    def history(channel, _position, _seconds, most, _time)
      server[:history].select { |name, _| name == channel }.last(most).map { |_, payload| [1, 1.0, payload] }
    end
  end

  def setup
    @server = { history: [] }
    @relays = %i[first second].map { |name| Fairlead::Cable::Relay.new(Broker.new, native: Process.new(@server, name)) }
  end

  def test_the_leader_alone_delivers
    receive("room", "1", "2")

    assert_equal [["room", "1", 3], ["room", "2", 3]], @server[:history]
  end

  def test_a_message_keeps_its_name_and_its_bytes
    relay = @relays.first
    relay.broadcast("räum", "\xFF\u0000".b)
    relay.receive(*relay.broker.published)

    assert_equal [["räum".b, "\xFF\u0000".b, 3]], @server[:history]
    refute relay.receive("other channel", "x")
  end

  def test_the_next_leader_continues_with_the_first_message_that_is_missing
    receive("room", "1", "1", "2")
    receive("other", "a")
    @relays.last.receive(*packed("room", "1"))
    @relays.last.receive(*packed("room", "3"))
    @relays.last.receive(*packed("third", "x"))
    @server[:leader] = nil
    @relays.last.continue

    assert_equal %w[1 1 2 1 3], payloads("room")
    assert_equal %w[a], payloads("other")
    assert_equal %w[x], payloads("third")
    @relays.last.continue
    assert_equal 7, @server[:history].size
  end

  def test_equal_messages_are_counted
    receive("room", "1")
    2.times { @relays.last.receive(*packed("room", "1")) }
    @server[:leader] = nil
    @relays.last.continue

    assert_equal %w[1 1 1], payloads("room")
  end

  def test_a_leader_that_is_still_there_stays
    receive("room", "1")
    @relays.last.continue

    assert_equal %w[1], payloads("room")
  end

  private

  # All processes receive, the leader first.
  def receive(channel, *payloads)
    payloads.each { |payload| @relays.each { |relay| relay.receive(*packed(channel, payload)) } }
  end

  def packed(channel, payload) = ["fairlead:cable", [channel.bytesize, channel].pack("NA*") + payload]

  def payloads(channel) = @server[:history].select { |name, _| name == channel }.map { |_, payload| payload }
end
