# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Opening handshakes of RFC 6455 §4. A request that is not a valid handshake stays an ordinary request: the application
# decides about the response, here 426 and the supported version.
class HandshakeTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  APP = <<~'RUBY'
    next [426, { "content-type" => "text/plain", "sec-websocket-version" => "13" }, ["no WebSocket"]] unless env["rack.upgrade?"] == :websocket

    env["rack.upgrade"] = Object.new
    chosen = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(/\s*,\s*/).last
    [200, { "x-extensions" => env["HTTP_SEC_WEBSOCKET_EXTENSIONS"].to_s }.merge(chosen ? { "sec-websocket-protocol" => chosen } : {}), []]
  RUBY

  FIELDS = { "host" => "a", **Fairlead::Test::WebSocket::Handshake::FIELDS }.freeze

  # Fields of a request; nil leaves one out. §4.2.1 and §4.1 list the required ones.
  OPENED = {
    "as it should be" => {},
    "other letters" => { "upgrade" => "WebSocket", "connection" => "UPGRADE" },
    "among other connection options" => { "connection" => "keep-alive, Upgrade" },
    "in a second connection field" => { "connection" => %w[keep-alive Upgrade] },
    "among other protocols" => { "upgrade" => "h2c, websocket" },
    "space around the values" => { "sec-websocket-version" => " 13 ", "sec-websocket-key" => " dGhlIHNhbXBsZSBub25jZQ==\t" },
    "an origin, which is the application's affair" => { "origin" => "https://elsewhere.example" },
    "an empty body" => { "content-length" => "0" }
  }.freeze

  NOT_OPENED = {
    "no key" => { "sec-websocket-key" => nil },
    "an empty key" => { "sec-websocket-key" => "" },
    "a key of 15 bytes" => { "sec-websocket-key" => ["x" * 15].pack("m0") },
    "a key of 17 bytes" => { "sec-websocket-key" => ["x" * 17].pack("m0") },
    "a key without padding" => { "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ" },
    "a key that is not base64" => { "sec-websocket-key" => "dGhlIHNhbXBsZSBub25j_Q==" },
    "two keys" => { "sec-websocket-key" => %w[dGhlIHNhbXBsZSBub25jZQ== dGhlIHNhbXBsZSBub25jZQ==] },
    "no version" => { "sec-websocket-version" => nil },
    "version 12" => { "sec-websocket-version" => "12" },
    "version 13 written otherwise" => { "sec-websocket-version" => "013" },
    "a list of versions" => { "sec-websocket-version" => "13, 8" },
    "two versions" => { "sec-websocket-version" => %w[13 13] },
    "no connection option" => { "connection" => "keep-alive" },
    "no connection field" => { "connection" => nil },
    "an option that only begins alike" => { "connection" => "upgraded" },
    "no upgrade field" => { "upgrade" => nil },
    "another protocol" => { "upgrade" => "h2c" },
    "a protocol that only begins alike" => { "upgrade" => "websockets" }
  }.freeze

  def test_handshakes_are_accepted
    server = serve(linted(APP))

    OPENED.each do |what, fields|
      answer = connect(server).write(request("GET", fields)).answer

      assert_equal 101, answer.status, what
      assert_equal "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", answer["sec-websocket-accept"], what # the example of §1.3
    end
  end

  def test_everything_else_stays_a_request
    client = connect(serve(linted(APP)))

    NOT_OPENED.each do |what, fields|
      answer = client.write(request("GET", fields)).answer

      assert_equal [426, "no WebSocket"], [answer.status, answer.body], what
    end
  end

  def test_other_methods_and_versions_and_a_body_stay_requests_too
    server = serve(linted(APP))

    %w[POST HEAD OPTIONS].each { |method| assert_equal 426, connect(server).write(request(method, {})).answer(to: method).status, method }
    assert_equal 426, connect(server).write(request("GET", {}).sub("HTTP/1.1", "HTTP/1.0")).answer.status
    assert_equal 426, connect(server).write("#{request("GET", "content-length" => "2")}ab").answer.status
    assert_equal 426, connect(server).write("#{request("GET", "transfer-encoding" => "chunked")}0\r\n\r\n").answer.status
  end

  def test_a_handshake_without_host_is_malformed
    assert_equal 400, connect(serve(linted(APP))).write(request("GET", "host" => nil)).answer.status
  end

  def test_all_protocols_reach_the_application_and_its_choice_the_client
    server = serve(linted(APP))

    assert_equal "three", web_socket(server, protocols: %w[one two three]).protocol
    answer = connect(server).write(request("GET", "sec-websocket-protocol" => ["one, two", "three"])).answer
    assert_equal "three", answer["sec-websocket-protocol"]
  end

  DEFAULT = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

  # Offered extensions => negotiated ones. RFC 7692 §5 and §7.1: a malformed, unknown or repeated parameter declines only its
  # own offer.
  OFFERS = {
    nil => nil,
    "" => nil,
    "," => nil,
    "x-unknown" => nil,
    "permessage-deflate" => DEFAULT,
    "PerMessage-Deflate" => DEFAULT,
    "permessage-deflate; client_max_window_bits" => DEFAULT,
    "permessage-deflate; client_max_window_bits=8" => DEFAULT,
    'permessage-deflate; server_max_window_bits="10"' => "#{DEFAULT}; server_max_window_bits=10",
    "permessage-deflate; server_max_window_bits" => nil,
    "permessage-deflate; server_max_window_bits=7" => nil,
    "permessage-deflate; server_max_window_bits=8" => nil,
    "permessage-deflate; server_max_window_bits=16" => nil,
    "permessage-deflate; server_max_window_bits=010" => nil,
    "permessage-deflate; client_max_window_bits=7" => nil,
    "permessage-deflate; client_no_context_takeover; client_no_context_takeover" => nil,
    "permessage-deflate; server_no_context_takeover=1" => nil,
    "permessage-deflate; unknown" => nil,
    "permessage-deflate; =" => nil,
    "permessage-deflate;" => nil,
    'permessage-deflate; server_max_window_bits="10' => nil,
    "permessage-deflate; unknown, permessage-deflate" => DEFAULT,
    "x-unknown; a=1, permessage-deflate" => DEFAULT,
    %w[x-unknown permessage-deflate] => DEFAULT,
    "permessage-deflate; server_max_window_bits=9, permessage-deflate" => "#{DEFAULT}; server_max_window_bits=9"
  }.freeze

  def test_offers_of_extensions
    server = serve(linted(APP))

    OFFERS.each do |offer, agreed|
      answer = connect(server).write(request("GET", "sec-websocket-extensions" => offer)).answer

      assert_equal 101, answer.status, offer.inspect
      agreed ? assert_equal(agreed, answer["sec-websocket-extensions"], offer.inspect) : assert_nil(answer["sec-websocket-extensions"], offer.inspect)
    end
  end

  private

  # The request of a handshake with +changes+ to its fields: nil removes one, an Array repeats it.
  def request(method, changes)
    lines = FIELDS.merge(changes).flat_map { |name, value| Array(value).map { |one| "#{name}: #{one}\r\n" } }
    "#{method} / HTTP/1.1\r\n#{lines.join}\r\n"
  end
end
