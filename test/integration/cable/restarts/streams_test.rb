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

  EVENTS = "map('/events') { run Fairlead::Cable::Events.new }"

  # Signed streams, without Rails, and event streams.
  def test_streams_go_on
    server = moving_cable(code: "#{TURBO}\n#{EVENTS}")
    client = connected(server)
    stream = signed_stream(server, client)
    streams = Array.new(2) { |number| opened(server, "/events?name=name#{number}&channel=PlainChannel") }
    identifier = CGI.escape(JSON.generate(channel: "FickleChannel", how: "reject"))
    rejected = opened(server, "/events?name=ann&identifier=#{identifier}")
    speak(server, 1)
    assert_equal 1, told(client)
    before = [*streams, rejected].map { |one| one.receive.id }
    renew(server)
    speak(server, 2)

    assert_equal 2, told(client)
    events = streams.map(&:receive)
    assert_equal [%w[2 2], 1], [events.map(&:data), events.map(&:id).uniq.size]
    assert_operator before.first[/\d+\z/].to_i, :<, events.first.id[/\d+\z/].to_i
    assert_rejected rejected
    refute_match(/StreamsChannel/, log(server))
    command(client, "unsubscribe", stream)
    subscribe(client, stream)
    assert_quiet(client)
    assert_empty server.stderr
  end

  # Rails decides about a signature that is not valid any more, and takes part if the new code has a callback.
  def test_signed_streams_that_the_new_code_has_changed
    server = moving_cable(code: TURBO)
    client = connected(server)
    stream = signed_stream(server, client)
    server.write("new_key", "")
    renew(server)
    assert_equal({ "identifier" => JSON.generate(stream), "type" => "reject_subscription" }, heard(client))
    speak(server, "<one>")
    assert_quiet(client)

    signed_stream(server, client)
    server.write("callback", "")
    renew(server, times: 2)
    speak(server, "<two>")
    assert_equal "<two>", told(client)
    wait_for_log(server, /a callback/)
    assert_quiet(client)
  end

  private

  # Subscribes a client to a stream with a signed name.
  def signed_stream(server, client)
    name = evaluate(server, 'Turbo.signed_stream_verifier.generate("room")').delete('"')
    { channel: "Turbo::StreamsChannel", signed_stream_name: name }.tap { |stream| subscribe(client, stream) }
  end

  def assert_rejected(stream)
    event = stream.receive
    event = stream.receive if event.event.nil? # a message from before
    assert_equal ["disconnect", { "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }], [event.event, JSON.parse(event.data)]
    assert_operator Integer(event.retry, 10), :>, 86_400_000
    assert_equal :last_chunk, stream.end_of_stream
  end

  # Opens an event stream, and takes the messages of its beginning.
  def opened(server, path)
    stream = event_stream(server, path)
    assert_equal %w[confirm_subscription welcome], Array.new(2) { stream.receive.event }.sort
    stream
  end
end
