# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# Streams with signed names, which the server confirms: turbo_test.rb has them with turbo-rails, if it is installed. Here a channel of the
# same form stands for it.
class CableSignedStreamsTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  TURBO = <<~'RUBY'
    require "openssl" # Rails loads it in the first thread that needs it
    require "active_support/message_verifier"

    module Turbo
      module Engine
        def self.root = File.dirname(Turbo::StreamsChannel.instance_method(:subscribed).source_location.first)
      end

      def self.signed_stream_verifier_key = "secret"
      def self.signed_stream_verifier = @verifier ||= ActiveSupport::MessageVerifier.new("secret", digest: "SHA256", serializer: JSON)

      class StreamsChannel < ActionCable::Channel::Base
        def self.verified_stream_name(name) = Turbo.signed_stream_verifier.verified(name)

        def subscribed
          name = self.class.verified_stream_name(params[:signed_stream_name])
          name ? stream_from(name) : reject
        end
      end
    end
  RUBY

  def test_the_server_confirms_a_signed_name
    server = cable(code: TURBO)
    client = connected(server)
    stream = stream(server)
    subscribe(client, stream)
    evaluate(server, 'ActionCable.server.broadcast("room", "<turbo-stream>")')
    assert_equal "<turbo-stream>", told(client)
    refute_match(/StreamsChannel/, log(server), "Rails has not heard of it")

    command(client, "unsubscribe", stream)
    subscribe(client, stream)
  end

  def test_a_forged_name_and_a_changed_channel_are_for_rails
    server = cable(code: TURBO)
    subscribe(connected(server), { channel: "Turbo::StreamsChannel", signed_stream_name: "forged" }, answer: "reject_subscription")
    server = cable(code: "#{TURBO}\nTurbo::StreamsChannel.before_subscribe { logger.info('before') }")
    subscribe(connected(server), stream(server))

    wait_for_log(server, /before/)
  end

  def test_clients_of_anycables_protocol_have_positions_a_session_and_a_history
    server = turbo_cable
    former, welcome = welcomed(server)
    stream = stream(server)
    subscribe(former, stream)
    broadcast(server, "<one>")
    one = heard(former)
    former.drop(reset: true)
    broadcast(server, "<two>")
    client, again = welcomed(server, sid: welcome["sid"])
    command(client, "history", stream, history: { streams: position(one) })

    assert_equal [JSON.generate(stream)], again["restored_ids"]
    assert_equal ["<two>"], heard_messages(client, 1)
    assert_equal "confirm_history", heard(client)["type"]
  end

  def test_an_event_stream_belongs_to_the_connections_of_the_server
    server = turbo_cable
    events = event_stream(server, "/events?name=ann&channel=RoomChannel")
    assert_equal %w[confirm_subscription welcome], Array.new(2) { events.receive.event }.sort
    assert_equal "1", evaluate(server, "ActionCable.server.connections.size")
    evaluate(server, "ActionCable.server.restart")

    assert_equal "disconnect", events.receive.event
    refute_match(/exception/, log(server))
  end

  private

  def turbo_cable = extended_cable("-w", 1, code: "#{TURBO}\nmap('/events') { run Fairlead::Cable::Events.new }")

  def stream(server)
    name = evaluate(server, 'Turbo.signed_stream_verifier.generate("room")').delete('"')
    { channel: "Turbo::StreamsChannel", signed_stream_name: name }
  end
end
