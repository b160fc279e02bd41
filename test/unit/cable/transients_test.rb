# frozen_string_literal: true

require "test_helper"

# Messages without history to the clients of a process: Fairlead::Cable::Extended::Transients.
class TransientsTest < Minitest::Test
  Transients = Fairlead::Cable::Extended::Transients

  # A client that takes so many messages.
  Client = Struct.new(:sid, :heard, :most, :messages) do
    def transmit(message)
      messages << message
      messages.size <= most
    end
  end

  # The clients of a channel. Counts the deletions.
  class Channel < Hash
    attr_reader :deletions

    def delete(...)
      @deletions = @deletions.to_i + 1
      super
    end
  end

  def setup
    @former = Transients.instance_variable_get(:@clients)
    @clients = Transients.instance_variable_set(:@clients, {})
  end

  def teardown = Transients.instance_variable_set(:@clients, @former)

  def test_a_message_is_encoded_once
    client = client("a", 9, %w[one two])
    Transients.deliver("room", '{"raw":  1}', type: "presence")

    assert_equal %w[one two].map { |id| %({"type":"presence","identifier":"#{id}","message":{"raw":  1}}) }, client.messages
  end

  def test_a_client_that_is_closed_gets_no_more
    clients = [client("a", 1, %w[one two three four]), client("b", 9, %w[one])]
    Transients.deliver("room", "1")

    assert_equal [2, 1], clients.map { |one| one.messages.size }
  end

  def test_the_end_of_a_client_visits_its_own_channels
    gone = client("a", 9, %w[one])
    stays = client("b", 9, %w[one])
    other = @clients["other"] = Channel.new.compare_by_identity.merge!(stays => true)
    Transients.forget(gone)

    assert_nil other.deletions
    assert_equal [stays], @clients["room"].keys
    assert_empty gone.heard
    Transients.forget(stays.tap { |one| one.heard["other"] = { "one" => true } })
    assert_empty @clients
  end

  private

  def client(sid, most, identifiers)
    heard = { "room" => identifiers.to_h { |one| [one, true] } }
    Client.new(sid, heard, most, []).tap { |one| (@clients["room"] ||= Channel.new.compare_by_identity)[one] = true }
  end
end
