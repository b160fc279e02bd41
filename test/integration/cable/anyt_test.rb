# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# The scenarios of anyt, AnyCable's conformance suite, over both sub-protocols. Those about history, restored sessions, whispers
# and presence are in extended/.
class AnytTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  CODE = <<~'RUBY'
    class Connection
      def connect
        reject_unauthorized_connection if params[:reason] == "unauthorized"
        reject_unauthorized_connection if params[:test] == "cookies" && request.cookies["username"] != "john green"
        reject_unauthorized_connection if params[:test] == "headers" && request.headers["X-API-TOKEN"] != "abc"
        reject_unauthorized_connection if params[:test] == "url" && request.url !~ /test=url/
        self.name = params[:name]
      end

      def params = request.params
    end

    class SecretChannel < ActionCable::Channel::Base
      def subscribed = connection.params["token"] == "secret" ? nil : reject
    end

    class TwoChannel < ActionCable::Channel::Base
      def subscribed = %w[a b].each { |name| stream_from(name) }
      def follow(data) = stream_from(data["name"])
      def unfollow(data) = stop_stream_from(data["name"])
      def tick = transmit("tock")
      def echo(data) = transmit({ response: data["text"] })
    end

    class LeavingChannel < ActionCable::Channel::Base
      def subscribed
        @user = { name: params["name"] }
        stream_from("leaving")
      end

      def tick
        @count = @count.to_i + 2
        transmit({ count: @count, name: @user[:name] })
      end

      def unsubscribed = ActionCable.server.broadcast("leaving", { data: "user left: #{@user[:name]}" })
    end

    class GreetingChannel < ActionCable::Channel::Base
      def subscribed = %w[hello world].each { |word| transmit(word) }
    end
  RUBY

  BOTH = [[PROTOCOL], PROTOCOLS].freeze
  TWO = { channel: "TwoChannel" }.freeze

  def test_requests
    server = anyt
    each_protocol do |protocols|
      assert_equal "welcome", welcomed(server, protocols: protocols, test: "url").last["type"]
      assert_equal "welcome", welcomed(server, protocols: protocols, test: "cookies", headers: { "cookie" => "username=john green" }).last["type"]
      assert_equal "welcome", welcomed(server, protocols: protocols, test: "headers", headers: { "x-api-token" => "abc" }).last["type"]
      [{ test: "cookies" }, { test: "headers" }, { reason: "unauthorized" }].each do |parameters|
        client, refusal = welcomed(server, protocols: protocols, **parameters)
        assert_equal({ "type" => "disconnect", "reconnect" => false, "reason" => "unauthorized" }, refusal)
        client.receive_close
      end
    end
  end

  def test_pings
    server = anyt
    each_protocol do |protocols|
      client, = welcomed(server, protocols: protocols)
      assert_equal "ping", JSON.parse(client.receive.last)["type"]
      client.send_text(JSON.generate(command: "pong"))
      subscribe(client, TWO)
    end
  end

  def test_acknowledgements_and_parameters
    server = anyt
    each_protocol do |protocols|
      client, = welcomed(server, protocols: protocols, token: "secret")
      subscribe(client, { channel: "SecretChannel" })
      [1, 2].each { |id| subscribe(client, { channel: "SecretChannel", id: id }) }
      other, = welcomed(server, protocols: protocols)
      subscribe(other, { channel: "SecretChannel" }, answer: "reject_subscription")
    end
  end

  def test_actions_and_transmissions
    server = anyt
    each_protocol do |protocols|
      client, = welcomed(server, protocols: protocols)
      command(client, "subscribe", { channel: "GreetingChannel" })
      assert_equal %w[hello world], heard_messages(client, 2)
      assert_equal "confirm_subscription", heard(client)["type"]
      subscribe(client, TWO)
      act(client, "tick", to: TWO)
      act(client, "echo", to: TWO, text: "hello")
      assert_equal ["tock", { "response" => "hello" }], heard_messages(client, 2)
    end
  end

  def test_streams_begin_and_end
    server = anyt
    each_protocol do |protocols|
      client, = welcomed(server, protocols: protocols)
      subscribe(client, TWO)
      %w[a b].each { |name| broadcast(server, name, name) }
      assert_equal %w[a b], heard_messages(client, 2)
      act(client, "unfollow", to: TWO, name: "a")
      act(client, "follow", to: TWO, name: "c")
      act(client, "tick", to: TWO)
      assert_equal ["tock"], heard_messages(client, 1)
      %w[a b c].each { |name| broadcast(server, name, name) }
      assert_equal %w[b c], heard_messages(client, 2)

      subscribe(client, { **TWO, some: "parameter" })
      broadcast(server, "both", "b")
      assert_equal [TWO, { **TWO, some: "parameter" }].map { |to| JSON.generate(to) }, Array.new(2) { heard(client)["identifier"] }.sort_by(&:size)
      command(client, "unsubscribe", TWO)
      broadcast_after(server, client)
    end
  end

  def test_the_end_of_a_client_and_the_state_of_its_channels
    server = anyt
    each_protocol do |protocols|
      watcher, = welcomed(server, protocols: protocols)
      subscribe(watcher, { channel: "LeavingChannel", name: "watcher" })
      act(watcher, "tick", to: { channel: "LeavingChannel", name: "watcher" })
      assert_equal({ "count" => 2, "name" => "watcher" }, told(watcher))
      client, = welcomed(server, protocols: protocols)
      %w[1 2].each { |name| subscribe(client, { channel: "LeavingChannel", name: name }) }
      client.close(1000)

      assert_equal ["user left: 1", "user left: 2"], heard_messages(watcher, 2).map { |message| message["data"] }.sort
    end
  end

  def test_a_restart_of_the_server_disconnects
    server = anyt
    each_protocol do |protocols|
      client, = welcomed(server, protocols: protocols)
      restart = "ActionCable.server.connections.any?.tap { |any| ActionCable.server.restart if any }"
      wait_until("the connection") { evaluate(server, restart) == "true" }

      assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, heard(client))
    end
  end

  private

  def anyt = extended_cable(code: CODE)

  def each_protocol(&block) = BOTH.each(&block)

  # Asserts that a subscription without streams of its own gets the next message of the other one only.
  def broadcast_after(server, client)
    act(client, "tick", to: { **TWO, some: "parameter" })
    assert_equal ["tock"], heard_messages(client, 1)
    %w[one two].each { |text| broadcast(server, text, "b") }
    assert_equal %w[one two], heard_messages(client, 2)
  end
end
