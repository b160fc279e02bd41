# frozen_string_literal: true

require "test_helper"
require "support/needed_gems"
require "support/real_time"

# WebSockets that the application makes from a hijacked socket, with websocket-driver, like faye-websocket and Action Cable.
class WebsocketDriverTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::NeededGems

  parallelize_me!

  APP = <<~'RUBY'
    require "websocket/driver"

    # One connection: the driver writes to the socket, and its thread reads.
    class Peer
      attr_reader :env

      def initialize(env)
        @env = env
        @io = env["rack.hijack"].call
        @driver = WebSocket::Driver.rack(self, protocols: ["echo"])
        @driver.on(:message) { |event| event.data.is_a?(String) ? @driver.text(event.data) : @driver.binary(event.data) }
        @driver.on(:close) { @io.close_write }
        @driver.start
        Thread.new { read }
      end

      def url = "ws://#{env["HTTP_HOST"]}#{env["REQUEST_URI"]}"
      def write(bytes) = @io.write(bytes)

      private

      def read
        loop { @driver.parse(@io.readpartial(4096)) }
      rescue EOFError, SystemCallError
        @io.close
      end
    end

    run lambda { |env|
      next [200, { "content-type" => "text/plain" }, ["plain"]] unless WebSocket::Driver.websocket?(env)

      Peer.new(env)
      [-1, {}, []]
    }
  RUBY

  def setup = needs_gems("websocket-driver")

  def test_it_talks
    client = web_socket(serve(APP, "-t", 2), protocols: %w[echo])

    assert_equal "echo", client.protocol
    assert_equal [:text, "grüße"], client.send_text("grüße").receive
    assert_equal [:binary, ("\xff\0" * 70_000).b], client.send_binary("\xff\0" * 70_000).receive
    client.close(1000)
    assert_equal 1000, client.receive_close.first
    assert client.ended?
  end

  def test_a_hundred_of_them_beside_requests
    server = serve(APP, "-t", 2)
    clients = Array.new(100) { web_socket(server) }
    clients.each_with_index { |client, number| client.send_text(number.to_s) }

    assert_equal (0...100).map(&:to_s), clients.map { |client| client.receive.last }
    assert_served(server)
  end

  def test_they_do_not_end_when_their_answer_does
    server = serve(APP, "--keep-alive-timeout", 1, "--head-timeout", 1)
    client = web_socket(server)

    assert client.silent?(2.5)
    assert_equal [:text, "late"], client.send_text("late").receive
  end
end
