# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Applications that respond 101 themselves and then speak another protocol: with `rack.hijack` in their header, or with a
# body that is called with the socket, like async-websocket.
class SwitchingProtocolsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  # A WebSocket server on a plain IO that echoes every message.
  SETUP = <<~'RUBY'
    require "digest"

    module Echo
      def self.head(env)
        key = env["HTTP_SEC_WEBSOCKET_KEY"].to_s
        accept = [Digest::SHA1.digest("#{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")].pack("m0")
        { "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-accept" => accept, "x-mine" => "1" }
      end

      def self.accept(env) = head(env).slice("sec-websocket-accept", "x-mine")

      def self.call(stream)
        while (head = stream.read(2))
          first, length = head.bytes
          length &= 0x7f
          length = stream.read(2).unpack1("n") if length == 126
          mask = stream.read(4).bytes.cycle
          text = stream.read(length).bytes.map { |byte| byte ^ mask.next }.pack("C*")
          stream.write([first, length < 126 ? length : 126].pack("CC"), *([length].pack("n") if length >= 126), text)
          stream.flush
          break if first & 0x0f == 8
        end
      ensure
        Notes.add("ended")
        stream.close
      end

      def self.later(stream) = Thread.new { call(stream) }
    end
  RUBY

  # Forms of the response.
  FORMS = [
    "[101, Echo.head(env).merge('rack.hijack' => Echo.method(:call)), []]",
    "[101, Echo.head(env), Echo.method(:call)]",
    "[101, Echo.head(env).merge('rack.hijack' => Echo.method(:later)), []]",
    "[101, Echo.head(env), Echo.method(:later)]",
    "[101, Echo.head(env).merge('content-length' => '0', 'transfer-encoding' => 'chunked'), ->(stream) { Echo.call(stream) }]"
  ].freeze

  # As in Rack 3.1: the server sets the status and `upgrade`.
  PROTOCOLS = [200, 101].map { |status| "[#{status}, Echo.accept(env).merge('rack.protocol' => 'websocket'), Echo.method(:call)]" }.freeze

  def test_a_web_socket_of_the_application
    (FORMS + PROTOCOLS).each do |form|
      server = switching(form)
      client = web_socket(server)
      assert_equal ["1", nil, nil], %w[x-mine content-length transfer-encoding].map { |name| client.fields.assoc(name)&.last }, form
      ["grüße", "x" * 10_000, ""].each { |text| assert_equal [:text, text], client.send_text(text).receive, form }
      client.close(1000)

      assert_equal 1000, client.receive_close.first
      assert client.ended?
      assert_equal ["ended"], wait_for_notes(server, 1), form
    end
  end

  def test_what_came_behind_the_request_is_not_lost
    (FORMS + PROTOCOLS).each do |form|
      client = connect(switching(form))
      request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" \
                "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
      client.write("#{request}\x81\x85\0\0\0\0hello")

      assert_match(%r{\AHTTP/1\.1 101 Switching Protocols\r\n.*^connection: upgrade\r\n}m, client.read_through("\r\n\r\n"))
      assert_equal "\x81\x05hello".b, client.read(7)
    end
  end

  def test_it_outlasts_the_time_outs_of_requests_and_leaves_the_threads_alone
    server = switching(FORMS[3], "-t", 1, "--keep-alive-timeout", 1, "--head-timeout", 1, "--write-timeout", 1)
    clients = Array.new(20) { web_socket(server) }

    assert clients.first.silent?(2.5)
    assert_equal (0...20).map(&:to_s), clients.each_with_index.map { |client, number| client.send_text(number.to_s).receive.last }
  end

  # 101 responses without an accepted upgrade are errors: RFC 9110 §15.2.2 requires the name of the protocol, and that the
  # client has offered it.
  REFUSED = [
    "[101, Echo.head(env), []]", "[101, Echo.head(env), Enumerator.new { |out| out << 'x' }]",
    "[101, Echo.head(env).reject { |name,| name == 'upgrade' }, Echo.method(:call)]",
    "[200, { 'rack.protocol' => 'chat' }, Echo.method(:call)]", "[200, { 'rack.protocol' => :websocket }, Echo.method(:call)]",
    "[200, { 'rack.protocol' => 'websocket' }, ['x']]",
    "[100, Echo.head(env), Echo.method(:call)]", "[103, Echo.head(env).merge('rack.hijack' => Echo.method(:call)), []]"
  ].freeze

  def test_what_accepts_no_upgrade_is_an_error
    REFUSED.each do |form|
      server = switching(form)
      refused = assert_raises(Fairlead::Test::WebSocket::Refused, form) { web_socket(server) }
      assert_equal 500, refused.status
      server.wait_for_output(/status|101|rack\.protocol|switches protocols/)
    end
  end

  def test_a_refusal_is_none
    server = switching("[403, { 'rack.protocol' => 'websocket' }, ['no']]")

    assert_equal 403, assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server) }.status
  end

  def test_what_the_client_offers
    server = switching("[200, {}, [env['rack.protocol'].inspect]]")
    offer = { "connection" => "upgrade", "upgrade" => "a, b/2" }

    assert_equal '["a", "b/2"]', get(server, "/", offer).body
    assert_equal "nil", get(server, "/", offer.slice("upgrade")).body
    assert_equal "nil", get(server).body
  end

  def test_who_has_not_asked_for_it_gets_none
    (FORMS + PROTOCOLS).values_at(0, 1, -2, -1).each do |form|
      server = switching(form)
      assert_equal 500, get(server).status
      assert_equal 500, get(server, "/", "upgrade" => "websocket").status
      old = connect(server).write("GET / HTTP/1.0\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
      assert_equal 500, old.answer.status
    end
  end

  def test_what_it_raises_is_logged_and_ends_the_connection
    ["[101, Echo.head(env), ->(stream) { raise KeyError, 'in the stream' }]",
     "[101, Echo.head(env).merge('rack.hijack' => ->(stream) { raise KeyError, 'in the stream' }), []]"].each do |form|
      server = switching(form)

      assert web_socket(server).ended?
      server.wait_for_output(/in the stream/)
    end
  end

  private

  def switching(code, *arguments) = serve(unlinted(code, setup: SETUP), *arguments)
end
