# frozen_string_literal: true

require "test_helper"
require "support/real_time"
require_relative "proxies"

# WebSockets and event streams through popular proxies, with the necessary configuration.
class ProxiesTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  ECHO = <<~'RUBY'
    def on_open(client)
      STREAMS << client if client.protocol == :sse
    end

    def on_message(client, data)
      code, reason = data.match(/\Aclose (\d+) (.*)\z/)&.captures
      code ? client.close(Integer(code, 10), reason) : client.write(data)
    end

    def on_close(client) = Notes.add(client.protocol)
  RUBY

  FIELDS = Fairlead::Test::EventStream::FIELDS.map { |pair| "#{pair.join(": ")}\r\n" }.join

  Proxy::KINDS.each_key do |kind|
    define_method("test_web_sockets_through_#{kind}") do
      client = adopt_web_socket(Fairlead::Test::WebSocket.over(start(kind).connect, deflate: true))

      ["grüße", "0123456789abcdef" * 16_384].each { |text| assert_equal [:text, text], client.send_text(text).receive }
      assert_equal [:binary, "\x00\xFF".b], client.send_binary("\x00\xFF".b).receive
      assert_equal "there?", client.ping("there?").receive_pong
      assert_equal [4001, "goodbye"], client.send_text("close 4001 goodbye").receive_close
      assert client.ended?
    end

    define_method("test_the_end_of_a_web_socket_gets_through_#{kind}") do
      client = adopt_web_socket(Fairlead::Test::WebSocket.over(start(kind).connect))
      client.send_text("here").receive
      client.drop

      assert_equal %w[websocket], wait_for_notes(@server, 1)
    end

    define_method("test_events_come_through_#{kind}_one_by_one") do
      stream = event_stream_over(start(kind).connect)
      wait_until("the stream to open") { requested(@server, "STREAMS.size") == "1" }

      %w[one two].each do |text|
        requested(@server, "STREAMS.first.write('#{text}')")
        assert_equal text, stream.receive.data
      end
      requested(@server, "STREAMS.first.close")
      assert stream.end_of_stream
    end

    # A proxy with nothing to send may not notice that the client has left.
    define_method("test_the_end_of_an_event_stream_gets_through_#{kind}_with_the_next_event") do
      stream = event_stream_over(start(kind).connect)
      wait_until("the stream to open") { requested(@server, "STREAMS.size") == "1" }
      stream.drop

      wait_until("the server to notice the end") { requested(@server, "STREAMS.first.write('more')") && notes(@server).any? }
      assert_equal %w[sse], notes(@server)
    end
  end

  def teardown
    @proxy&.stop
    super
  end

  private

  def start(kind)
    skip "#{kind} is not installed" unless Proxy.program(kind.to_s)
    @server = pushing(ECHO, setup: "STREAMS = []")
    @proxy = Proxy.new(kind, @server.port)
  end

  def event_stream_over(socket)
    socket.write("GET /feed HTTP/1.1\r\n#{FIELDS}\r\n")
    (@event_streams ||= []) << (stream = Fairlead::Test::EventStream.new(socket))
    stream
  end
end
