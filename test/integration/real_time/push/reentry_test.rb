# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Callbacks that act on their own client, or on all clients, while they run.
class ReentryTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_a_client_can_be_closed_as_soon_as_it_opens
    server = pushing("def on_open(client) = (client.write('bye'); client.close(4000))\ndef on_close(client) = Notes.add('closed')")
    client = web_socket(server)

    assert_equal [:text, "bye"], client.receive
    assert_equal 4000, client.receive_close.first
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  def test_a_handler_can_be_replaced_as_soon_as_it_opens
    server = pushing(<<~'RUBY')
      def initialize(left = 3) = @left = left
      def on_open(client) = @left.positive? ? client.handler = Handler.new(@left - 1) : client.write("settled")
      def on_close(_) = Notes.add(@left)
    RUBY
    client = web_socket(server)

    assert_equal [:text, "settled"], client.receive
    client.close
    assert_equal %w[3 2 1 0], wait_for_notes(server, 4)
  end

  # Code of on_close that must have no effect.
  LAST_ACTS = ["client.close", "client.write('x')", "client.handler = Handler.new", "client.subscribe('all')", "client.publish('all', 'x')",
               "client.timeout = 1", "client.env.clear", "Fairlead.publish('all', 'x')", "GC.start"].freeze

  def test_on_close_may_do_what_it_likes_and_comes_once
    LAST_ACTS.each do |code|
      server = pushing("#{Fairlead::Test::RealTimeServing::CONSOLE}\ndef on_close(client) = (Notes.add('closed'); #{code})")
      other = web_socket(server)
      told(other, "client.subscribe('all')")
      web_socket(server).close

      assert_equal ["closed"], wait_for_notes(server, 1)
      3.times { assert_served(server, other) }
      assert_equal ["closed"], notes(server), code
    end
  end

  def test_a_subscription_may_end_itself_and_make_others
    client = web_socket(pushing(CONSOLE))
    told(client, <<~RUBY)
      client.subscribe("a") { |_, message| client.unsubscribe("a"); client.subscribe("b"); client.publish("b", message) }
    RUBY
    2.times { told(client, "client.publish('a', 'once')") }

    client.wait_for("a message") { client.messages.any? }
    assert_equal ["once"], heard(client)
  end

  def test_a_subscription_that_publishes_to_itself_does_not_keep_others_out
    server = pushing(CONSOLE, "-t", 1)
    client = web_socket(server)
    told(client, "client.subscribe('loop') { |_, message| client.publish('loop', message) unless File.exist?('stop') }")
    told(client, "client.publish('loop', 'x')")

    3.times { assert_served(server, client) }
    assert_equal "2", told(client, "1 + 1")
    server.write("stop", "")
  end

  def test_a_client_is_answered_before_it_is_let_go
    server = pushing("def on_message(client, data) = client.write(data)")
    client = web_socket(server)
    client.send_raw(Fairlead::Test::WebSocket::Frames.build(1, "last words") + Fairlead::Test::WebSocket::Frames.build(8, [1000].pack("n")))

    assert_equal [:text, "last words"], client.receive
    assert_equal 1000, client.receive_close.first
  end

  def test_a_thread_that_a_callback_ends_is_replaced
    server = pushing("def on_message(client, data) = data == 'die' ? Thread.current.kill : client.write(data)", "-t", 1)
    client = web_socket(server)
    3.times { assert_equal [:text, "alive"], client.send_text("die").send_text("alive").receive }

    assert_served(server, client)
  end

  def test_a_client_that_nobody_keeps_is_collected_and_one_that_is_kept_is_not
    server = pushing("def on_open(client) = (KEPT << client if client.env['PATH_INFO'] == '/keep'; client.write('open'))", setup: "KEPT = []")
    20.times { |number| web_socket(server, number.zero? ? "/keep" : "/").tap(&:receive).drop }
    count = "GC.start; ObjectSpace.each_object(Fairlead::Client).count"
    wait_until("the clients to be collected") { requested(server, count).to_i.between?(1, 5) }

    assert_equal "[false, -1, \"/keep\"]", requested(server, "[KEPT[0].open?, KEPT[0].pending, KEPT[0].env['PATH_INFO']]")
  end
end
