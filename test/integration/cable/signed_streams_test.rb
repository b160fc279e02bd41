# frozen_string_literal: true

require "test_helper"
require "support/action_cable"

# Streams with signed names, which the server confirms: turbo_test.rb has them with turbo-rails, if it is installed. Here a channel of the
# same form stands for it.
class CableSignedStreamsTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

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
    stream = { channel: "Turbo::StreamsChannel", signed_stream_name: signed(server, "room") }
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
    subscribe(connected(server), { channel: "Turbo::StreamsChannel", signed_stream_name: signed(server, "room") })

    wait_for_log(server, /before/)
  end

  private

  def signed(server, name) = evaluate(server, "Turbo.signed_stream_verifier.generate(#{name.inspect})").delete('"')
end
