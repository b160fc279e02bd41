# frozen_string_literal: true

require "test_helper"
require "json"
require "support/needed_gems"
require "support/real_time"

# Action Cable, which hijacks its sockets and watches them in its own thread.
class ActionCableTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::NeededGems

  parallelize_me!

  APP = <<~'RUBY'
    require "logger"
    require "concurrent"
    require "action_cable"

    class Connection < ActionCable::Connection::Base
      identified_by :name
      def connect = self.name = request.params["name"] || reject_unauthorized_connection
    end

    class RoomChannel < ActionCable::Channel::Base
      def subscribed = stream_from("room")
      def speak(data) = ActionCable.server.broadcast("room", { from: name, text: data["text"] })
      def unsubscribed = File.write("left", "#{name}\n", mode: "a")
    end

    ActionCable.server.config.tap do |config|
      config.cable = { "adapter" => "async" }
      config.connection_class = -> { Connection }
      config.logger = Logger.new("cable.log")
      config.allowed_request_origins = ["http://good.example"]
    end

    map("/cable") { run ActionCable.server }
    map("/") { run ->(_env) { [200, { "content-type" => "text/plain" }, ["page"]] } }
  RUBY

  IDENTIFIER = JSON.generate(channel: "RoomChannel")
  ORIGIN = { "origin" => "http://good.example" }.freeze

  def setup = needs_gems("actioncable")

  def test_everybody_in_a_room_hears_who_speaks
    server = serve(APP, "-t", 2)
    clients = %w[ann bob eve].map { |name| joined(server, name) }
    command(clients.first, "message", data: JSON.generate(action: "speak", text: "grüße"))

    expected = { "identifier" => IDENTIFIER, "message" => { "from" => "ann", "text" => "grüße" } }
    assert_equal [expected] * 3, clients.map { |client| heard(client) }
    assert_equal "page", get(server).body
  end

  def test_more_clients_than_threads
    server = serve(APP, "-t", 1)
    clients = Array.new(30) { |number| joined(server, "client#{number}") }
    command(clients.last, "message", data: JSON.generate(action: "speak", text: "all"))

    assert_equal ["all"], clients.map { |client| heard(client).dig("message", "text") }.uniq
    assert_equal "page", get(server).body
  end

  def test_a_client_that_leaves_is_noticed
    server = serve(APP)
    joined(server, "ann").close(1000)
    joined(server, "bob").drop(reset: true)

    wait_until("the end of both clients") { File.exist?(server.path("left")) && File.readlines(server.path("left"), chomp: true).sort == %w[ann bob] }
  end

  def test_its_connections_outlast_the_time_outs_of_requests
    server = serve(APP, "--keep-alive-timeout", 1, "--head-timeout", 1)
    client = joined(server, "ann")
    assert_equal "ping", JSON.parse(client.receive.last)["type"]
    command(client, "message", data: JSON.generate(action: "speak", text: "still here"))

    assert_equal "still here", heard(client).dig("message", "text")
  end

  def test_who_may_not_connect_is_told_so
    server = serve(APP)
    client = web_socket(server, "/cable", headers: ORIGIN, protocols: %w[actioncable-v1-json])

    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, JSON.parse(client.receive.last))
    refused = assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server, "/cable", headers: { "origin" => "http://evil.example" }) }
    assert_equal 404, refused.status
  end

  def test_the_server_ends_although_clients_are_connected
    server = serve(APP)
    client = joined(server, "ann")

    assert_ends_before_its_timeout server
    assert client.ended?
  end

  private

  def joined(server, name)
    client = web_socket(server, "/cable?name=#{name}", headers: ORIGIN, protocols: %w[actioncable-v1-json actioncable-unsupported])
    assert_equal "actioncable-v1-json", client.protocol
    assert_equal({ "type" => "welcome" }, JSON.parse(client.receive.last))
    command(client, "subscribe")
    assert_equal "confirm_subscription", heard(client)["type"]
    client
  end

  def command(client, name, **more) = client.send_text(JSON.generate(command: name, identifier: IDENTIFIER, **more))

  # Returns the next message that is not a heartbeat.
  def heard(client)
    message = JSON.parse(client.receive.last)
    message["type"] == "ping" ? heard(client) : message
  end
end
