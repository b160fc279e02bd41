# frozen_string_literal: true

require "test_helper"
require "support/action_cable"

# Native sockets of Action Cable: the handshake, the life of a connection, and its log.
class CableConnectionsTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  parallelize_me!

  FAST_BEAT = "ActionCable::Server::Connections.tap { |one| one.send(:remove_const, :BEAT_INTERVAL) && one.const_set(:BEAT_INTERVAL, 0.05) }"

  # Our adapter, and one of Rails' own ones with native sockets.
  %w[fairlead async].each do |adapter|
    define_method(:"test_everybody_in_a_room_hears_who_speaks_with_#{adapter}") do
      server = cable("-t", 2, adapter: adapter)
      clients = %w[ann bob eve].map { |name| joined(server, name) }
      act(clients.first, "speak", text: "grüße <b>")

      expected = { "identifier" => JSON.generate(ROOM), "message" => { "from" => "ann", "text" => "grüße <b>" } }
      assert_equal [expected] * 3, clients.map { |client| heard(client) }
      assert_equal "page", get(server).body
      assert_equal 3, websockets(server)
    end
  end

  # Action Cable has a thread of its own for hijacked sockets, and one for each job.
  def test_sockets_and_commands_need_no_thread_of_rails
    server = cable("-t", 2)
    act(joined(server), "answer", text: "x")

    assert_equal "[]", evaluate(server, "Thread.list.flat_map { |thread| thread.backtrace.to_a.grep(%r{concurrent/executor|event_loop}) }")
  end

  def test_our_adapter_makes_them_native
    server = cable(sockets: "auto")
    joined(server)

    assert_equal 1, websockets(server)
  end

  def test_other_adapters_keep_rails_sockets_unless_told_otherwise
    [cable(sockets: "auto", adapter: "async"), cable(sockets: "rails")].each do |server|
      client = joined(server)
      act(client, "speak", text: "x")

      assert_equal "x", told(client)["text"]
      assert_equal 0, websockets(server)
    end
  end

  # Rails' own sockets lose commands that come before they are open.
  def test_a_command_right_behind_the_handshake_waits_until_the_application_has_connected
    server = cable(code: "Connection.prepend(Module.new { def connect = (sleep 0.2; super) })")
    client = web_socket(server, "/cable?name=ann", headers: ORIGIN, protocols: PROTOCOLS)
    command(client, "subscribe")

    assert_equal %w[welcome confirm_subscription], Array.new(2) { heard(client)["type"] }
  end

  def test_the_first_known_protocol_of_the_client_is_chosen
    server = cable
    chosen = [%w[other actioncable-unsupported actioncable-v1-json], %w[actioncable-v1-json], %w[other], []].map do |offered|
      web_socket(server, "/cable?name=ann", headers: ORIGIN, protocols: offered).protocol
    end

    assert_equal ["actioncable-unsupported", "actioncable-v1-json", nil, nil], chosen
  end

  def test_a_wrong_origin_and_a_plain_request_find_no_page
    server = cable
    refused = assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server, "/cable?name=ann", headers: { "origin" => "http://evil.example" }) }

    assert_equal 404, refused.status
    assert_equal [404, "Page not found"], [get(server, "/cable").status, get(server, "/cable").body]
    wait_for_log(server, %r{Request origin not allowed: http://evil\.example$})
    wait_for_log(server, /Failed to upgrade to WebSocket \(REQUEST_METHOD: GET, HTTP_CONNECTION: .*, HTTP_UPGRADE: .*\)/)
  end

  def test_a_refused_connection_is_told_why_and_closed
    server = cable
    client = web_socket(server, "/cable", headers: ORIGIN, protocols: PROTOCOLS)

    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, heard(client))
    assert_equal [1000, ""], client.receive_close
    wait_until("its end") { evaluate(server, "ActionCable.server.connections.size") == "0" }
  end

  def test_the_log_has_the_lines_and_tags_of_rails
    code = 'ActionCable.server.config.log_tags = [:cable, ->(request) { request.params["name"] }]
      ActionCable.server.config.logger = ActiveSupport::TaggedLogging.new(Logger.new("cable.log"))'
    server = cable(code: code)
    joined(server).close(1000)
    wait_for_log(server, /Finished/)

    assert_equal <<~LINES.lines(chomp: true), log(server).lines(chomp: true).grep_v(/^#/).map { |line| line.sub(/ at \d.*/, "") }
      [Cable] [ann] Started GET "/cable?name=ann" [WebSocket] for 127.0.0.1
      [Cable] [ann] Successfully upgraded to WebSocket (REQUEST_METHOD: GET, HTTP_CONNECTION: Upgrade, HTTP_UPGRADE: websocket)
      [Cable] [ann] Registered connection (ann)
      [Cable] [ann] RoomChannel is streaming from room
      [Cable] [ann] RoomChannel is transmitting the subscription confirmation
      [Cable] [ann] Finished "/cable?name=ann" [WebSocket] for 127.0.0.1
      [Cable] [ann] RoomChannel stopped streaming from room
    LINES
  end

  def test_a_client_that_leaves_is_noticed
    server = cable
    joined(server, "ann").close(1000)
    joined(server, "bob").drop(reset: true)

    wait_until("the end of both clients") { File.exist?(server.path("left")) && File.readlines(server.path("left"), chomp: true).sort == %w[ann bob] }
    wait_until("no connection") { evaluate(server, "ActionCable.server.connections.size") == "0" }
    # One is of the process: for remote disconnects.
    wait_until("no subscription") { evaluate(server, "Fairlead.stats[:engines].sum { |engine| engine[:subscriptions] }") == "1" }
  end

  def test_connections_and_their_statistics
    server = cable
    joined(server)
    statistics = evaluate(server, "ActionCable.server.open_connections_statistics.map { |one| one.merge(started_at: one[:started_at].class) }")

    assert_equal [{ identifier: "ann", started_at: Time, subscriptions: [JSON.generate(ROOM)], request_id: nil }].inspect, statistics
  end

  def test_every_client_gets_pings
    server = cable
    clients = Array.new(3) { |number| joined(server, "client#{number}") }

    assert_equal %w[ping] * 3, clients.map { |client| JSON.parse(client.receive.last)["type"] }
    assert_kind_of Integer, JSON.parse(clients.first.receive.last)["message"]
  end

  def test_another_interval_of_pings
    client = joined(cable(code: FAST_BEAT))

    assert_equal %w[ping] * 3, client.receive_all(3).map { |text| JSON.parse(text)["type"] }
  end

  # Applications override it, to note who is there.
  def test_a_beat_of_the_application_is_called
    client = joined(cable(code: "#{FAST_BEAT}; class Connection; def beat = transmit({ type: 'ping', message: name }); end"))

    assert_equal [{ "type" => "ping", "message" => "ann" }] * 2, client.receive_all(2).map { |text| JSON.parse(text) }
  end

  def test_remote_connections_are_disconnected_at_once
    server = cable("-w", 2, "-t", 2, code: SLEEPER)
    ann, bob, eve = %w[ann bob ann].map { |name| joined(server, name) }
    command(ann, "subscribe", { channel: "SleepyChannel" })
    wait_until("the action") { File.exist?(server.path("asleep")) }
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'ann').disconnect")

    [ann, eve].each { |client| assert_equal [1000, ""], disconnect_of(client) }
    act(bob, "answer", text: "here")
    assert_equal({ "answer" => "here" }, told(bob))
  end

  def test_a_restart_disconnects_everybody
    server = cable
    clients = %w[ann bob].map { |name| joined(server, name) }
    evaluate(server, "ActionCable.server.restart")

    clients.each do |client|
      assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, heard(client))
      assert_equal [1000, ""], client.receive_close
    end
    wait_until("the end of both") { File.exist?(server.path("left")) && File.readlines(server.path("left")).size == 2 }
    client = joined(server)
    act(client, "speak", text: "again")
    assert_equal "again", told(client)["text"]
  end

  # Identifiers are methods of a channel, come before its own methods, and are no actions.
  def test_channels_know_the_identifiers_of_their_connection
    server = cable(code: <<~'RUBY')
      class NamedChannel < ActionCable::Channel::Base
        def name = "own"
        def tell = transmit({ name: name, own: own })
        def own = "own"
      end

      class SubChannel < NamedChannel; end
    RUBY
    %w[NamedChannel SubChannel RoomChannel].each do |channel|
      client = joined(server, to: to = { channel: channel })
      act(client, "name", to: to)
      act(client, "tell", to: to)
      act(client, "answer", to: to, text: channel)

      assert_equal channel == "RoomChannel" ? { "answer" => channel } : { "name" => "ann", "own" => "own" }, told(client)
    end
    wait_for_log(server, /Unable to process SubChannel#name.*Unable to process RoomChannel#name/m)
    assert_equal '[["own", "tell"], "ann"]',
                 evaluate(server, <<~'RUBY'.tr("\n", " "))
                   [SubChannel.action_methods.sort,
                    ActionCable.server.connections.first.subscriptions.send(:subscriptions).values.first.name]
                 RUBY
  end

  def test_any_thread_may_transmit
    server = cable
    clients = %w[ann bob].map { |name| joined(server, name) }
    evaluate(server, "ActionCable.server.connections.map { |connection| Thread.new { connection.transmit({ to: connection.name }) }.join.value }")

    assert_equal [{ "to" => "ann" }, { "to" => "bob" }], clients.map { |client| heard(client) }
  end

  def test_binary_messages_are_refused_as_by_rails
    server = cable
    client = joined(server)
    client.send_binary("\xFF\x00".b)
    wait_for_log(server, /Couldn't handle non-string message: Array/)
    act(client, "answer", text: "still here")

    assert_equal({ "answer" => "still here" }, told(client))
  end

  def test_the_server_ends_although_clients_are_connected
    server = cable
    client = joined(server)

    assert_ends_before_its_timeout server
    assert_equal 1001, client.receive_close(skip: true).first
  end

  def test_compressed_messages
    client = joined(cable("--deflate-min-bytes", 10), deflate: true)
    text = "compressible " * 100
    act(client, "answer", text: text)
    act(client, "speak", text: text)

    refute_nil client.deflate
    assert_equal [{ "answer" => text }, { "from" => "ann", "text" => text }], [told(client), told(client)]
  end

  SLEEPER = <<~'RUBY'
    class SleepyChannel < ActionCable::Channel::Base
      def subscribed = File.write("asleep", "") && sleep
    end
  RUBY

  private

  # The number of native WebSockets.
  def websockets(server) = Integer(evaluate(server, "Fairlead.stats[:engines].sum { |engine| engine[:websockets] }"), 10)

  # Rails 7.0 and older close without a reason.
  def disconnect_of(client)
    client.wait_for("the close") { client.over? }
    client.messages.each { |_, text| assert_includes %w[ping disconnect], JSON.parse(text)["type"] }
    client.messages.clear
    client.receive_close
  end
end
