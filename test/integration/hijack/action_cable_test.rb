# frozen_string_literal: true

require "test_helper"
require "support/action_cable"

# Action Cable as Rails serves it: it hijacks its sockets and watches them in its own thread.
class ActionCableTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  parallelize_me!

  def test_everybody_in_a_room_hears_who_speaks
    server = hijacked("-t", 2)
    clients = %w[ann bob eve].map { |name| joined(server, name) }
    act(clients.first, "speak", text: "grüße")

    expected = { "identifier" => JSON.generate(ROOM), "message" => { "from" => "ann", "text" => "grüße" } }
    assert_equal [expected] * 3, clients.map { |client| heard(client) }
    assert_equal "page", get(server).body
  end

  def test_more_clients_than_threads
    server = hijacked("-t", 1)
    clients = Array.new(30) { |number| joined(server, "client#{number}") }
    act(clients.last, "speak", text: "all")

    assert_equal ["all"], clients.map { |client| told(client)["text"] }.uniq
    assert_equal "page", get(server).body
  end

  def test_a_client_that_leaves_is_noticed
    server = hijacked
    joined(server, "ann").close(1000)
    joined(server, "bob").drop(reset: true)

    wait_until("the end of both clients") { File.exist?(server.path("left")) && File.readlines(server.path("left"), chomp: true).sort == %w[ann bob] }
  end

  def test_its_connections_outlast_the_time_outs_of_requests
    server = hijacked("--keep-alive-timeout", 1, "--head-timeout", 1)
    client = joined(server, "ann")
    assert_equal "ping", JSON.parse(client.receive.last)["type"]
    act(client, "speak", text: "still here")

    assert_equal "still here", told(client)["text"]
  end

  def test_who_may_not_connect_is_told_so
    server = hijacked
    client = web_socket(server, "/cable", headers: ORIGIN, protocols: %w[actioncable-v1-json])

    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, JSON.parse(client.receive.last))
    refused = assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server, "/cable", headers: { "origin" => "http://evil.example" }) }
    assert_equal 404, refused.status
  end

  def test_the_server_ends_although_clients_are_connected
    server = hijacked
    client = joined(server, "ann")

    assert_ends_before_its_timeout server
    assert client.ended?
  end

  private

  def hijacked(*arguments) = cable(*arguments, adapter: "async", sockets: "rails")
end
