# frozen_string_literal: true

require "test_helper"
require "openssl"
require "support/extended_cable"

# The channel $pubsub, for clients of both sub-protocols.
class ExtendedSignedStreamsTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  SECRET = "a secret"
  SETTINGS = %(ActionCable.server.config.cable.merge!("streams_secret" => "#{SECRET}")).freeze
  PUBLIC = "class Connection\n  def allow_public_streams? = name == 'ann'\nend"

  def test_a_signed_name_is_enough
    server = extended_cable(code: SETTINGS)
    both = [[PROTOCOL], PROTOCOLS].map { |protocols| welcomed(server, protocols: protocols).first }
    both.each { |client| subscribe(client, signed("news/7")) }
    broadcast(server, { "text" => "grüße" }, "news/7")

    assert_equal [{ "text" => "grüße" }] * 2, both.map { |client| told(client) }
  end

  def test_the_server_signs_names_in_the_same_way
    server = extended_cable(code: SETTINGS)

    assert_equal signed("news:7").fetch(:signed_stream_name).inspect.b, evaluate(server, 'Fairlead::Cable.signed_stream_name(["news", 7])').b
  end

  def test_forged_names_and_names_without_a_signature_are_rejected
    server = extended_cable(code: SETTINGS)
    client, = welcomed(server)
    genuine = signed("news").fetch(:signed_stream_name)
    forged = [signed("news", "another secret")[:signed_stream_name], genuine.sub(/.\z/) do |last|
                                                                       last == "0" ? "1" : "0"
                                                                     end, "news", "", "--", nil, 5, [genuine]]
    forged.each { |name| subscribe(client, { channel: "$pubsub", signed_stream_name: name }, answer: "reject_subscription") }

    subscribe(client, { channel: "$pubsub", stream_name: "news" }, answer: "reject_subscription")
    subscribe(client, { channel: "$pubsub" }, answer: "reject_subscription")
  end

  def test_without_a_key_nothing_is_signed
    [{}, { "streams_secret" => "", "jwt_secret" => " " }].each do |settings|
      server = extended_cable(code: "ActionCable.server.config.cable.merge!(#{settings})")
      client, = welcomed(server)
      subscribe(client, signed("news"), answer: "reject_subscription")
      subscribe(client, signed("news", ""), answer: "reject_subscription")
      assert_equal "welcome", heard(web_socket(server, "/cable?name=ann&jid=x", headers: ORIGIN, protocols: [PROTOCOL]))["type"]
    end
  end

  def test_a_connection_may_allow_public_streams
    server = extended_cable(code: PUBLIC)
    public = { channel: "$pubsub", stream_name: "lobby" }
    clients = Array.new(2) { joined(server, to: public) }
    command(clients.first, "whisper", public, data: "hush")
    assert_equal "hush", told(clients.last)
    command(clients.last, "join", public, presence: { id: "me" })
    assert_equal "join", told(clients.first)["type"]

    other, = welcomed(server, "eve")
    subscribe(other, public, answer: "reject_subscription")
  end

  def test_streams_of_the_server_itself_are_reserved
    server = extended_cable(code: "#{PUBLIC}\n#{SETTINGS}")
    client, = welcomed(server)
    ["action_cable/YW5u", "fairlead/cable/presence"].each do |name|
      subscribe(client, { channel: "$pubsub", stream_name: name }, answer: "reject_subscription")
      subscribe(client, signed(name), answer: "reject_subscription")
    end
  end

  def test_its_streams_have_a_history_and_are_restored
    server = extended_cable(code: SETTINGS)
    client, welcome = welcomed(server)
    subscribe(client, signed("news"))
    broadcast(server, 1, "news")
    last = heard(client)
    client.drop(reset: true)
    broadcast(server, 2, "news")
    client, = welcomed(server, sid: welcome["sid"])
    command(client, "history", signed("news"), history: { streams: position(last) })

    assert_equal [2], heard_messages(client, 1)
  end

  private

  # As AnyCable signs names.
  def signed(name, secret = SECRET)
    encoded = [JSON.generate(name)].pack("m0")
    { channel: "$pubsub", signed_stream_name: "#{encoded}--#{OpenSSL::HMAC.hexdigest("SHA256", secret, encoded)}" }
  end
end
