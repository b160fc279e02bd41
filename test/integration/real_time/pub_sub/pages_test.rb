# frozen_string_literal: true

require "test_helper"
require "json"
require "support/kept_messages"

# Clients that say from where on they want messages with a history: pages of stock clients, event streams, and WebSockets with a position.
class PagesTest < Minitest::Test
  include Fairlead::Test::KeptMessages

  parallelize_me!

  def test_a_web_socket_gets_the_messages_since_a_position_as_they_are
    server = pushing(CONSOLE, "-t", 2)
    position = text(requested(server, "Fairlead::PubSub.position"))
    requested(server, publish("one"))
    client = web_socket(server)
    assert_equal '"room"', told(client, "client.subscribe('room', since: #{position.inspect})")
    requested(server, publish("two"))
    assert_equal [[:text, '"one"'], [:text, '"two"']], heard_from(client, 2)

    assert_equal "true", told(client, "client.unsubscribe('room')")
    assert_equal "false", told(client, "client.subscribe('room', since: 'garbage')")
    assert_equal "! ArgumentError", told(client, "client.subscribe('room', since: 'x') { }")
    requested(server, publish("three"))
    assert_equal [[:text, '"three"']], heard_from(client, 1)
  end

  def test_an_event_stream_continues_where_it_was_cut_off
    handler = <<~RUBY
      def on_open(client) = client.write(client.subscribe("room", since: client.env["HTTP_LAST_EVENT_ID"] || Fairlead::PubSub.position).inspect)
    RUBY
    server = pushing(handler, "-t", 2)
    first = event_stream(server)
    first.receive
    requested(server, publish("one"))
    id = first.receive.id
    requested(server, publish("two"))
    second = event_stream(server, headers: { "last-event-id" => id })

    assert_equal ['"two"', '"room"'], Array.new(2) { second.receive.data }
    third = event_stream(server)
    third.receive

    assert_equal text(requested(server, "Fairlead::PubSub.position")), third.last_event_id, "even if there was no event yet"
  end

  def test_an_event_stream_continues_one_channel
    handler = <<~RUBY
      def on_open(client) = client.write(%w[a b a].map { |name| client.subscribe(name, since: Fairlead::PubSub.position) }.inspect)
    RUBY
    stream = event_stream(pushing(handler))

    assert_equal '["a", nil, "a"]', stream.receive.data
  end

  def test_two_streams_of_a_page_have_their_own_receipts
    server = pushing(CONSOLE, "-t", 2)
    pages = %w[room other].to_h { |name| [name, text(requested(server, "Fairlead::PubSub.seal('#{name}')"))] }
    requested(server, "2.times { |number| Fairlead.publish('other', number.to_s, #{HISTORY}) }; #{publish("one")}")
    first = web_socket(server)
    first.answers_pings = false
    told(first, "client.stream('room', 'x', page: #{pages["room"].inspect})")
    told(first, "client.stream('other', 'y', page: #{pages["other"].inspect})")
    first.wait_for("the messages and the question") { first.messages.size == 3 && first.pings.any? }
    first.pong(first.pings.shift)
    first.ping("sync")
    first.receive_pong
    first.drop(reset: true)
    second = web_socket(server)

    assert_equal %w[0 2], %w[room other].map { |name| told(second, "client.stream('#{name}', '#{name}', page: #{pages[name].inspect})") }
  end

  def test_many_pages_do_not_make_others_old
    server = pushing(CONSOLE, "-t", 2, "--history-bytes", "256k")
    client = web_socket(server)
    told(client, "3_000.times { |number| client.stream('room', number.to_s, page: Fairlead::PubSub.seal('room')) }; nil")
    page = text(requested(server, "Fairlead::PubSub.seal('room')"))
    requested(server, publish("one"))
    told(client, "client.stream('room', 'another', page: Fairlead::PubSub.seal('room'))")

    assert_equal "1", told(web_socket(server), "client.stream('room', 'x', page: #{page.inspect})")
  end

  def test_a_page_gets_each_message_once_however_often_it_reconnects
    server = pushing(CONSOLE, "-w", 2, "-t", 2)
    page = text(requested(server, "Fairlead::PubSub.seal('room')"))
    requested(server, publish("one"))
    first = web_socket(server)
    assert_equal "1", told(first, "client.stream('room', 'x', page: #{page.inspect})")
    requested(server, publish("two"))
    assert_equal %w[one two], messages(first, 2)
    await_receipts(first)
    first.drop(reset: true)
    requested(server, publish("three"))
    second = web_socket(server)

    assert_equal "1", told(second, "client.stream('room', 'x', page: #{page.inspect})")
    assert_equal %w[three], messages(second, 1)
    assert_equal "0", told(second, "client.stream('other', 'x', page: #{page.inspect})"), "a position for another channel is none"
  end

  def test_signed_streams_are_confirmed_without_the_application
    server = pushing(CONSOLE, "-t", 1)
    client = web_socket(server)
    told(client, "client.send(:confirm_signed_streams, 'Turbo::StreamsChannel', '', 'secret')")
    name = "InJvb20i--c6767fcc43bd1c52db471c20499b4fd6fe1e32a421b21f2b00a3f25efb3c9995"
    page = text(requested(server, "Fairlead::PubSub.seal('room')"))
    requested(server, publish("one"))
    identifier = JSON.generate(channel: "Turbo::StreamsChannel", signed_stream_name: name, since: page)
    client.send_text(JSON.generate(command: "subscribe", identifier: identifier))
    assert_equal [{ "identifier" => identifier, "type" => "confirm_subscription" }, { "identifier" => identifier, "message" => "one" }],
                 received(client, 2)

    old = JSON.generate(channel: "Turbo::StreamsChannel", signed_stream_name: name, since: "forged")
    client.send_text(JSON.generate(command: "subscribe", identifier: old))
    assert_equal [nil], messages(client, 1)
    client.send_text(JSON.generate(command: "unsubscribe", identifier: identifier))
    told(client, "nil")
    requested(server, publish("two"))
    assert_equal [{ "identifier" => old, "message" => "two" }], received(client, 1)
  end
end
