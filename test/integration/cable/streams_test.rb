# frozen_string_literal: true

require "test_helper"
require "set"
require "support/action_cable"

# Streams of native Action Cable connections with our adapter: which messages are delivered without Ruby, and everything else as
# by Rails.
class CableStreamsTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  parallelize_me!

  # Counts the runs of Rails' own delivery: every message that a channel transmits passes here.
  COUNTED = <<~'RUBY'
    RUNS = Queue.new
    ActionCable::Server::Worker.set_callback(:work, :before) { RUNS << 1 }
  RUBY

  CHANNELS = <<~'RUBY'
    class JsonChannel < ActionCable::Channel::Base
      def subscribed = stream_from("one", coder: ActiveSupport::JSON)
    end

    class BlockChannel < ActionCable::Channel::Base
      def subscribed = stream_from("one") { |message| transmit({ raw: message }) }
    end

    class CallbackChannel < ActionCable::Channel::Base
      def subscribed = stream_from("one", ->(message) { transmit({ callback: message }) }, coder: ActiveSupport::JSON)
    end

    class CoderChannel < ActionCable::Channel::Base
      CODER = Class.new { def decode(text) = { decoded: text } }.new
      def subscribed = stream_from("one", coder: CODER)
    end

    class TransmitChannel < ActionCable::Channel::Base
      def subscribed = stream_from("one")

      private

      def transmit(data, via: nil) = super({ overridden: data }, via: via)
    end

    module Wrapped
      private

      def stream_handler(...) = super.then { |handler| ->(message) { @count = @count.to_i + 1; handler.call(message) } }
    end

    class HandlerChannel < ActionCable::Channel::Base
      include Wrapped
      def subscribed = stream_from("one")
      def count = transmit(@count)
    end

    class BothChannel < ActionCable::Channel::Base
      def subscribed
        stream_from("one")
        stream_from("one") { |message| transmit({ also: message }) }
        stream_from("two")
      end

      def stop(data) = stop_stream_from(data["name"])
      def stop_all = stop_all_streams
      def start(data) = stream_from(data["name"])
    end

    class RejectingChannel < ActionCable::Channel::Base
      def subscribed = stream_from("one").then { reject }
    end

    class RecordChannel < ActionCable::Channel::Base
      Record = Struct.new(:to_gid_param)
      def subscribed = stream_or_reject_for(params[:record] && Record.new(params[:record]))
    end
  RUBY

  def test_plain_streams_run_no_ruby
    server = cable(code: COUNTED + CHANNELS)
    clients = [joined(server, "ann", to: { channel: "BothChannel" }), joined(server, "bob", to: { channel: "JsonChannel" })]
    command(clients.first, "message", { channel: "BothChannel" }, data: JSON.generate(action: "stop", name: "one"))
    act(clients.first, "start", to: { channel: "BothChannel" }, name: "one")
    wait_for_log(server, /BothChannel is streaming from one.*BothChannel is streaming from one.*BothChannel is streaming from one/m)
    before = evaluate(server, "RUNS.size")
    100.times { |number| broadcast(server, "one", { number: number, html: "<b>&\u2028" }) }

    expected = Array.new(100) { |number| { "number" => number, "html" => "<b>&\u2028" } }
    clients.each { |client| assert_equal expected, Array.new(100) { told(client) } }
    assert_equal before, evaluate(server, "RUNS.size")
  end

  # Channel => the content of its message, if it takes Rails' path.
  PATHS = {
    "JsonChannel" => nil, "BlockChannel" => { "raw" => '{"a":1}' }, "CallbackChannel" => { "callback" => { "a" => 1 } },
    "CoderChannel" => { "decoded" => '{"a":1}' }, "TransmitChannel" => { "overridden" => { "a" => 1 } }, "HandlerChannel" => { "a" => 1 }
  }.freeze

  def test_everything_else_takes_the_path_of_rails
    server = cable(code: COUNTED + CHANNELS)
    PATHS.each do |channel, content|
      client = joined(server, to: { channel: channel })
      before = Integer(evaluate(server, "RUNS.size"), 10)
      broadcast(server, "one", { a: 1 })

      assert_equal content || { "a" => 1 }, told(client), channel
      # Since Rails 8.2, only blocks and callbacks are jobs.
      runs = content ? [1, *(0 unless content.key?("raw") || content.key?("callback"))] : [0]
      assert_includes runs, Integer(evaluate(server, "RUNS.size"), 10) - before, channel
      leave(server, client)
    end
  end

  def test_state_of_a_channel_is_kept
    server = cable(code: CHANNELS)
    client = joined(server, to: { channel: "HandlerChannel" })
    3.times { broadcast(server, "one", 1) }
    3.times { told(client) }
    act(client, "count", to: { channel: "HandlerChannel" })

    assert_equal 3, told(client)
  end

  def test_a_connection_that_overrides_transmit_or_encode_takes_the_path_of_rails
    ["def transmit(message) = super(message.merge(seen: true))", "private def encode(message) = super(message.merge(seen: true))"].each do |code|
      server = cable(code: "class Connection; #{code}; end")
      next if code.include?("encode") && evaluate(server, "ActionCable::Connection::Base.private_method_defined?(:encode)") == "false" # Rails 8.2

      client = web_socket(server, "/cable?name=ann", headers: ORIGIN, protocols: PROTOCOLS)
      assert_equal({ "type" => "welcome", "seen" => true }, heard(client))
      command(client, "subscribe")
      assert_equal "confirm_subscription", heard(client)["type"]
      broadcast(server, "room", "x")

      assert_equal({ "identifier" => JSON.generate(ROOM), "message" => "x", "seen" => true }, heard(client))
    end
  end

  def test_somebody_who_waits_for_each_transmission_is_told
    server = cable(code: 'TOLD = Queue.new; ActiveSupport::Notifications.subscribe("transmit.action_cable") { |*, payload| TOLD << payload }')
    client = joined(server)
    broadcast(server, "room", "x")

    assert_equal "x", told(client)
    assert_equal '[{:channel_class=>"RoomChannel", :data=>"x", :via=>"streamed from room"}]',
                 evaluate(server, "Array.new(TOLD.size) { TOLD.shift }").gsub(/(\w+): /, ':\1=>')
  end

  def test_events_of_rails
    server = cable(code: 'TOLD = Queue.new; ActiveSupport::Notifications.subscribe(/(?<!transmit)\.action_cable/) { |name, *| TOLD << name }')
    client = joined(server)
    act(client, "speak", text: "x")
    told(client)

    wait_until("all events") { evaluate(server, "TOLD.size") == "3" }
    assert_equal %w[broadcast.action_cable perform_action.action_cable transmit_subscription_confirmation.action_cable].inspect,
                 evaluate(server, "Array.new(3) { TOLD.shift }.sort")
  end

  def test_streams_of_one_channel_begin_and_end
    server = cable(code: CHANNELS)
    both = { channel: "BothChannel" }
    client = joined(server, to: both)
    broadcast(server, "one", 1)
    assert_equal [1, { "also" => "1" }].to_set, [told(client), told(client)].to_set
    act(client, "stop", to: both, name: "one")
    act(client, "start", to: both, name: "three")
    wait_for_log(server, /streaming from three/)
    %w[one two three].each { |name| broadcast(server, name, name) }
    assert_equal %w[two three], [told(client), told(client)]
    act(client, "stop_all", to: both)
    wait_for_log(server, /stopped streaming from three/)
    %w[one two three].each { |name| broadcast(server, name, name) }
    subscribe(client)
    broadcast(server, "room", "end")

    assert_equal "end", told(client)
    assert_equal %w[one two three], log(server).scan(/stopped streaming from (\w+)/).flatten
  end

  def test_an_unsubscribed_channel_hears_nothing
    server = cable(code: CHANNELS)
    client = joined(server)
    PATHS.each_key do |channel|
      subscribe(client, { channel: channel })
      command(client, "unsubscribe", { channel: channel })
      wait_for_log(server, /Unsubscribing from channel: .*#{channel}/)
    end
    act(client, "answer", text: "x")
    assert_equal({ "answer" => "x" }, told(client))
    broadcast(server, "one", 1)
    broadcast(server, "room", "end")

    assert_equal "end", told(client)
  end

  def test_a_rejected_subscription_hears_nothing
    server = cable(code: CHANNELS)
    client = joined(server)
    subscribe(client, { channel: "RejectingChannel" }, answer: "reject_subscription")
    subscribe(client, { channel: "RecordChannel" }, answer: "reject_subscription")
    broadcast(server, "one", 1)
    broadcast(server, "room", "end")

    assert_equal "end", told(client)
  end

  def test_streams_for_records
    server = cable(code: CHANNELS)
    client = joined(server, to: { channel: "RecordChannel", record: "gid" })
    evaluate(server, "RecordChannel.broadcast_to(RecordChannel::Record.new('gid'), { a: 1 })")

    assert_equal({ "a" => 1 }, told(client))
  end

  def test_subscriptions_of_one_client_to_the_same_stream
    server = cable(code: CHANNELS)
    client = connected(server)
    rooms = [1, 2].map { |number| { channel: "RoomChannel", number: number } }
    rooms.each { |room| subscribe(client, room) }
    broadcast(server, "room", "x")
    assert_equal rooms.map { |room| JSON.generate(room) }.to_set, [heard(client), heard(client)].to_set { |message| message["identifier"] }
    command(client, "unsubscribe", rooms.first)
    wait_for_log(server, /stopped streaming/)
    broadcast(server, "room", "y")

    assert_equal({ "identifier" => JSON.generate(rooms.last), "message" => "y" }, heard(client))
  end

  # The caller's own text, as it is.
  def test_a_broadcast_that_is_not_json_damages_no_frame
    server = cable(code: CHANNELS)
    plain, raw = %w[JsonChannel BlockChannel].map { |channel| joined(server, to: { channel: channel }) }
    texts = ["}, {", "text", "", "1 2", "[1, 12345678901234567890]"]
    ["\xFF\xFE", *texts].each { |text| evaluate(server, "ActionCable.server.broadcast('one', #{text.dump}, coder: nil)") }

    assert_equal [1, 12_345_678_901_234_567_890], told(plain)
    assert_equal texts, Array.new(5) { told(raw)["raw"] }
    server.wait_for_output(/dropping a message of the stream one: it is not JSON/)
  end

  def test_prefixes_of_channels
    server = cable("-w", 2, code: "#{CHANNELS}ActionCable.server.config.cable[:channel_prefix] = 'shop*'")
    ann, bob = %w[ann bob].map { |name| joined(server, name) }
    subscribe(ann, { channel: "BlockChannel" })
    broadcast(server, "room", "x")
    evaluate(server, "Fairlead.publish('room', '\"lost\"')")
    broadcast(server, "one", "y")

    assert_equal ["x", { "raw" => '"y"' }, "x"], [told(ann), told(ann), told(bob)]
    evaluate(server, "ActionCable.server.remote_connections.where(name: 'ann').disconnect")
    ann.wait_for("its end") { ann.over? }
    refute_predicate bob, :over?
  end

  def test_every_worker_delivers
    server = cable("-w", 2, code: CHANNELS)
    clients = Array.new(12) { |number| joined(server, "client#{number}", to: { channel: number.even? ? "JsonChannel" : "BlockChannel" }) }
    broadcast(server, "one", 1)

    assert_equal [1, { "raw" => "1" }] * 6, clients.map { |client| told(client) }
  end

  private

  def broadcast(server, name, message) = evaluate(server, "ActionCable.server.broadcast(#{name.dump}, #{message.inspect})")

  # Closes a client, and waits until the server has noticed.
  def leave(server, client)
    client.close(1000)
    wait_until("its end") { evaluate(server, "ActionCable.server.connections.size") == "0" }
  end
end
