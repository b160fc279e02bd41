# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

begin
  require "jwt"
rescue LoadError
  nil # the tests are skipped
end

# JSON Web Tokens that identify a connection.
class ExtendedTokensTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  SECRET = "a secret of more than thirty-two bytes"
  CODE = %(ActionCable.server.config.cable.merge!("jwt_secret" => "#{SECRET}")).freeze
  WHO = { channel: "WhoChannel" }.freeze
  WHO_CHANNEL = "class WhoChannel < ActionCable::Channel::Base\n  def subscribed = transmit({ name: name })\nend"

  # The record with the id 1 exists.
  RECORDS = <<~'RUBY'
    class GlobalID
      def self.parse(text) = (text if text.start_with?("gid://"))

      module Locator
        def self.locate(id) = ("found" if id.end_with?("/1"))
      end
    end
  RUBY
  UNAUTHORIZED = { "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }.freeze

  def setup
    super
    needs_gems("jwt")
  end

  def test_a_token_identifies_the_connection
    server = token_cable
    token = token({ name: "grace" })
    [[PROTOCOL], PROTOCOLS].each do |protocols|
      ways = [["/cable?jid=#{token}", {}, protocols], ["/cable", { "x-jid" => token }, protocols],
              ["/cable", {}, [*protocols, "anycable-token.#{token}"]]]
      ways.each do |path, headers, offered|
        client = web_socket(server, path, headers: ORIGIN.merge(headers), protocols: offered)
        assert_equal protocols.first, client.protocol
        assert_equal "welcome", heard(client)["type"]
        command(client, "subscribe", WHO)
        assert_equal [{ "name" => "grace" }], heard_messages(client, 1)
      end
    end
  end

  def test_without_a_token_connect_decides
    server = token_cable
    assert_equal "welcome", welcomed(server, "ann").last["type"]
    assert_equal UNAUTHORIZED, heard(web_socket(server, "/cable", headers: ORIGIN, protocols: [PROTOCOL]))
  end

  def test_a_global_id_stands_for_a_record_that_exists
    server = extended_cable("-w", 0, code: "#{RECORDS}#{WHO_CHANNEL}\n#{CODE}")
    client, = welcomed(server, jid: token({ name: "gid://app/User/1" }))
    command(client, "subscribe", WHO)
    assert_equal [{ "name" => "found" }], heard_messages(client, 1)
    assert_equal UNAUTHORIZED, welcomed(server, jid: token({ name: "gid://other/User/2" })).last
  end

  def test_an_expired_token_says_so
    server = token_cable
    client = web_socket(server, "/cable?name=ann&jid=#{token({ name: "grace" }, exp: Time.now.to_i - 60)}", headers: ORIGIN, protocols: [PROTOCOL])

    assert_equal({ "type" => "disconnect", "reason" => "token_expired", "reconnect" => false }, heard(client))
    assert_equal 1000, client.receive_close.first
  end

  def test_forged_and_malformed_tokens_are_unauthorized
    server = token_cable
    claims = { ext: JSON.generate(name: "grace"), exp: Time.now.to_i + 60 }
    contents = [{ exp: claims[:exp] }, { ext: "x" }, { ext: "[]" }].map { |other| JWT.encode(other, SECRET, "HS256") }
    keys = [["another secret of more than 32 bytes", "HS256"], [nil, "none"], [SECRET, "HS512"]].map { |key, name| JWT.encode(claims, key, name) }
    tokens = [*keys, *contents, "x", "a.b.c", "bnVsbA.bnVsbA.x", "a&jid=b"]
    tokens.each do |token|
      assert_equal UNAUTHORIZED, heard(web_socket(server, "/cable?name=ann&jid=#{token}", headers: ORIGIN, protocols: [PROTOCOL])), token
    end
  end

  private

  def token_cable = extended_cable(code: "#{WHO_CHANNEL}\n#{CODE}")

  def token(identifiers, **claims) = JWT.encode({ ext: JSON.generate(identifiers), exp: Time.now.to_i + 60, **claims }, SECRET, "HS256")
end
