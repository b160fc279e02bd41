# frozen_string_literal: true

require "test_helper"
require "support/extended_cable"

# Streams of Action Cable as server-sent events.
class ExtendedEventsTest < Minitest::Test
  include Fairlead::Test::ExtendedCable

  parallelize_me!

  CODE = <<~'RUBY'
    class ByeChannel < ActionCable::Channel::Base
      def subscribed
        transmit({ hello: name })
        stream_from("handled") { |message| transmit({ handled: message }) }
      end
    end

    class NoChannel < ActionCable::Channel::Base
      def subscribed = reject
    end

    class RaisingChannel < ActionCable::Channel::Base
      def subscribed = stream_from("room").then { raise("broken") }
    end

    Connection.prepend(Module.new do
      def connect
        super
        request.params["broken"] == "kill" ? Thread.current.kill : request.params["broken"] == "connect" && raise("broken")
      end
    end)

    ActionCable::Server::Connections.prepend(Module.new do
      def add_connection(connection) = connection.env["QUERY_STRING"].include?("broken=add") ? raise("broken") : super
    end)

    # Responds in another way than the application below it.
    class Other
      def initialize(app) = @app = app

      def call(env)
        @app.call(env).then do |response|
          other = Rack::Utils.parse_query(env["QUERY_STRING"])["other"]
          raise "broken" if other == "error"

          env.delete("rack.upgrade") if other == "200"
          other ? [other.to_i, {}, []] : response
        end
      end
    end

    map("/events") do
      use Other
      run Fairlead::Cable::Events.new
    end
  RUBY

  def test_messages_are_events_with_their_position
    server = events_cable
    stream = opened(server, channel: "RoomChannel")
    broadcast(server, { "text" => "grüße\nline" })
    event = stream.receive

    assert_nil event.event
    assert_equal({ "text" => "grüße\nline" }, JSON.parse(event.data))
    assert_match(/\A\h+\.\d+\z/, event.id)
  end

  def test_a_client_that_reconnects_misses_nothing
    server = events_cable
    stream = opened(server, channel: "RoomChannel")
    broadcast(server, 1)
    id = stream.receive.id
    stream.drop
    broadcast(server, 2)
    epoch, offset = id.split(".")
    streams = [id, "#{offset}/room/#{epoch}"].map { |last| opened(server, { "last-event-id" => last }, channel: "RoomChannel") }
    broadcast(server, 3)

    streams.each { |again| assert_equal %w[2 3], Array.new(2) { again.receive.data } }
  end

  def test_history_since_a_time
    server = events_cable
    broadcast(server, 1)
    stream = opened(server, channel: "RoomChannel", history_since: Time.now.to_i - 30)

    assert_equal "1", stream.receive.data
  end

  def test_an_unknown_position_is_rejected_and_new_messages_come
    server = events_cable
    ["x", "1234.1", "5/room/1234"].each do |last|
      stream = opened(server, { "last-event-id" => last }, channel: "RoomChannel")
      assert_equal "reject_history", stream.receive.event, last
      broadcast(server, 1)
      assert_equal "1", stream.receive.data
    end
  end

  def test_raw_streams_have_messages_only
    server = events_cable
    stream = event_stream(server, "/events?name=ann&channel=RoomChannel&raw=1")
    wait_until("the subscription") { subscribed(server) == 1 }
    broadcast(server, 1)

    assert_equal [nil, "1"], stream.receive.to_a.values_at(0, 2)
  end

  def test_transmissions_and_handlers
    server = events_cable
    stream = opened(server, channel: "ByeChannel", greeted: true)
    broadcast(server, "x", "handled")

    assert_equal({ "handled" => "\"x\"" }, JSON.parse(stream.receive.data))
  end

  def test_signed_streams
    server = events_cable(code: 'ActionCable.server.config.cable["streams_secret"] = "secret"')
    stream = opened(server, signed_stream: evaluate(server, 'Fairlead::Cable.signed_stream_name("news")').delete('"'))
    broadcast(server, 7, "news")

    assert_equal "7", stream.receive.data
  end

  def test_without_access_there_is_no_stream
    server = events_cable
    { "/events?channel=RoomChannel" => 401, "/events?name=ann&channel=NoChannel" => 401, "/events?name=ann&channel=Object" => 401,
      "/events?name=ann&stream=x" => 401, "/events?name=ann&signed_stream=x" => 401, "/events?name=ann&identifier=x" => 401,
      "/events?name=ann&channel=RaisingChannel" => 401, "/events?name=ann" => 400, "/events?name=ann&channel=%ff" => 400,
      "/events?name=ann&stream=%ff" => 400 }.each { |path, status| assert_equal status, status_of(server, path), path }
    assert_equal 406, get(server, "/events?name=ann&channel=RoomChannel").status
    assert_equal "0", evaluate(server, "ActionCable.server.connections.size")
  end

  def test_a_connection_that_fails_to_begin_lets_nobody_in
    server = events_cable
    %w[connect add].each { |way| assert_equal 401, status_of(server, "/events?name=ann&broken=#{way}&channel=RoomChannel") }
    %w[connect add kill].each do |way|
      client = web_socket(server, "/cable?name=ann&broken=#{way}", headers: ORIGIN, protocols: PROTOCOLS)
      assert_equal [1011, "the application has not accepted the connection"], client.receive_close(skip: true), way
    end
    wait_until("the end of all connections") { subscribed(server).zero? }
  end

  def test_another_response_ends_the_connection
    server = events_cable
    { "200" => 200, "404" => 404, "error" => 500 }.each do |other, status|
      path = "/events?name=ann&channel=RoomChannel&other=#{other}"
      assert_equal status, get(server, path, "accept" => "text/event-stream").status
    end
    wait_until("the end of all connections") { subscribed(server).zero? }
  end

  def test_a_page_that_was_made_before_a_message
    server = events_cable
    sealed = evaluate(server, 'Fairlead::Cable.position("room")').delete('"')
    broadcast(server, 1)
    stream = opened(server, identifier: JSON.generate(channel: "RoomChannel", since: sealed))

    assert_equal "1", stream.receive.data
  end

  def test_a_channel_with_two_streams
    server = events_cable(code: <<~RUBY)
      class TwoChannel < ActionCable::Channel::Base
        def subscribed
          stream_from("one")
          ActionCable.server.broadcast("one", "early")
          stream_from("two")
        end
      end
    RUBY
    stream = opened(server, channel: "TwoChannel")
    assert_equal '"early"', stream.receive.data
    broadcast(server, 1, "one")
    broadcast(server, 2, "two")

    assert_equal %w[1 2], Array.new(2) { stream.receive.data }.sort
  end

  # Newer versions of Rails say why.
  def test_a_remote_disconnect_ends_the_stream
    server = events_cable
    stream = opened(server, channel: "RoomChannel")
    evaluate(server, 'ActionCable.server.remote_connections.where(name: "ann").disconnect')

    assert_equal "last_chunk", assert_raises(Fairlead::Test::EventStream::Ended) { 2.times { stream.receive } }.message
  end

  # EventSource would reconnect, whatever happens.
  def test_a_client_that_must_not_reconnect_waits_for_a_year
    server = events_cable
    stream = opened(server, channel: "RoomChannel")
    code = "ActionCable.server.connections.each { |connection| connection.close(reason: 'over', reconnect: false) }.size"
    wait_until("the connection") { evaluate(server, code) == "1" }

    assert_equal ["disconnect", 31_536_000_000], stream.receive.to_a.values_at(0, 3).then { |event, pause| [event, pause.to_i] }
  end

  def test_the_end_of_a_client_ends_its_subscription
    server = events_cable
    opened(server, channel: "RoomChannel").drop

    wait_until("the end") { File.exist?(server.path("left")) }
  end

  private

  def events_cable(code: "") = extended_cable(code: "#{CODE}\n#{code}")

  # Opens a stream, and takes its first events.
  def opened(server, headers = {}, greeted: false, **parameters)
    stream = event_stream(server, "/events?#{URI.encode_www_form(name: "ann", **parameters)}", headers: headers)
    events = Array.new(greeted ? 3 : 2) { stream.receive.event }
    assert_equal %w[confirm_subscription welcome], events.compact.sort
    stream
  end

  def status_of(server, path) = event_stream(server, path).status

  def subscribed(server) = Array.new(8) { evaluate(server, "ActionCable.server.connections.size").to_i }.max
end
