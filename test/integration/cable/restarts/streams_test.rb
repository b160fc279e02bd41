# frozen_string_literal: true

require "test_helper"
require "cgi"
require "support/event_stream"
require "support/moving_cable"

# Streams that the server confirms without Rails, and event streams, when their client moves.
class MovingStreamsTest < Minitest::Test
  include Fairlead::Test::MovingCable
  include Fairlead::Test::EventStreams

  parallelize_me!

  # A channel of the form of turbo-rails.
  TURBO = <<~'RUBY'
    require "openssl"
    require "active_support/message_verifier"

    module Turbo
      module Engine
        def self.root = File.dirname(Turbo::StreamsChannel.instance_method(:subscribed).source_location.first)
      end

      def self.signed_stream_verifier_key = (VERSION == "2" && File.exist?("new_key")) ? "new" : "secret"
      def self.signed_stream_verifier = @verifier ||= ActiveSupport::MessageVerifier.new(signed_stream_verifier_key, digest: "SHA256", serializer: JSON)

      class StreamsChannel < ActionCable::Channel::Base
        before_subscribe { logger.info("a callback") } if VERSION == "2" && File.exist?("callback")

        def self.verified_stream_name(name) = Turbo.signed_stream_verifier.verified(name)

        def subscribed
          name = self.class.verified_stream_name(params[:signed_stream_name])
          name ? stream_from(name) : reject
        end
      end
    end
  RUBY

  def test_a_signed_stream_goes_on_without_rails
    server, client, stream = turbo
    renew(server)
    speak(server, "<one>")

    assert_equal "<one>", told(client)
    refute_match(/StreamsChannel/, log(server))
    command(client, "unsubscribe", stream)
    subscribe(client, stream)
    speak(server, "<two>")
    assert_equal "<two>", told(client)
    assert_quiet(client)
  end

  def test_rails_takes_over_a_stream_with_a_callback_in_the_new_code
    server, client, = turbo
    server.write("callback", "")
    renew(server)
    speak(server, "<one>")

    assert_equal "<one>", told(client)
    wait_for_log(server, /a callback/)
    assert_quiet(client)
  end

  def test_a_signature_that_the_new_code_does_not_know
    server, client, stream = turbo
    server.write("new_key", "")
    renew(server)

    assert_equal({ "identifier" => JSON.generate(stream), "type" => "reject_subscription" }, heard(client))
    speak(server, "<one>")
    assert_quiet(client)
  end

  EVENTS = "map('/events') { run Fairlead::Cable::Events.new }"

  def test_event_streams_go_on
    server = moving_cable(code: EVENTS)
    streams = Array.new(3) { |number| opened(server, "/events?name=name#{number}&channel=PlainChannel") }
    speak(server, 1)
    before = streams.map(&:receive)
    renew(server)
    speak(server, 2)
    after = streams.map(&:receive)

    assert_equal %w[1 2] * 3, before.zip(after).flatten.map(&:data)
    assert_equal 1, after.map(&:id).uniq.size
    assert_match(/\A\h+\.\d+\z/, after.first.id)
    renew(server, times: 2)
    speak(server, 3)
    assert_equal %w[3 3 3], (streams.map { |stream| stream.receive.data })
    assert_empty server.stderr
  end

  def test_an_event_stream_that_the_new_code_rejects
    server = moving_cable(code: EVENTS)
    stream = opened(server, "/events?name=ann&identifier=#{CGI.escape(JSON.generate(channel: "FickleChannel", how: "reject"))}")
    renew(server)
    event = stream.receive

    assert_equal ["disconnect", { "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }], [event.event, JSON.parse(event.data)]
    assert_operator Integer(event.retry, 10), :>, 86_400_000
    assert_equal :last_chunk, stream.end_of_stream
  end

  private

  # Returns a server, a client with a signed stream, and the stream.
  def turbo
    server = moving_cable(code: TURBO)
    client = connected(server)
    name = evaluate(server, 'Turbo.signed_stream_verifier.generate("room")').delete('"')
    stream = { channel: "Turbo::StreamsChannel", signed_stream_name: name }
    subscribe(client, stream)
    [server, client, stream]
  end

  # Opens an event stream, and takes the messages of its beginning.
  def opened(server, path)
    stream = event_stream(server, path)
    assert_equal %w[confirm_subscription welcome], Array.new(2) { stream.receive.event }.sort
    stream
  end
end
