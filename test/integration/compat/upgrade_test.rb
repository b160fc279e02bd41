# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Old applications from before Rack Push, with env["upgrade.websocket"].
class UpgradeIntegrationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  SETUP = <<~'RUBY'
    require "fairlead/compat/upgrade"
    class Peer
      def on_open = (@opened = true)
      def on_message(data) = write("= #{instance_eval(data).inspect}")
      def on_close = Notes.add("closed #{conn_id} of #{count}")
    end
  RUBY

  def test_what_it_says_of_a_request
    server = serve(unlinted('[200, {}, [env["upgrade.websocket?"].inspect, env.key?("upgrade.tcp?").inspect]]', setup: SETUP))

    assert_equal "falsefalse", get(server).body
    assert_equal 200, assert_raises(Fairlead::Test::WebSocket::Refused) { web_socket(server) }.status
  end

  def test_a_class_becomes_a_connection_each_time
    server = peers("Peer", status: 404)
    one, two = Array.new(2) { web_socket(server, "/x?y=z") }

    assert_equal "kept", one["x-application"]
    assert_equal "true", told(two, "@opened")
    assert_equal ["true", "2", '"/x"'], %w[@opened count env["PATH_INFO"]].map { |code| told(one, code) }
    assert_equal "nil", told(two, "each_write('from one')")
    assert_equal "from one", one.receive.last
    assert_equal "true", told(one, "defer { |me| me.write(me.equal?(self)) }")
    assert_equal "true", one.receive.last
    two.send_text("close")
    two.receive_close
    assert_match(/\Aclosed \d+ of 1\z/, wait_for_notes(server, 1).first)
    assert_empty server.stderr
  end

  def test_subscriptions_as_they_were
    server = peers("Peer.new", "-w", 2)
    clients = Array.new(6) { web_socket(server) }
    clients.each { |client| assert_equal '"n*"', told(client, "subscribe(pattern: 'n*', force: :binary)") }
    told(clients.first, "publish(channel: 'news', message: 'hello')")

    clients.each { |client| assert_equal [:binary, "hello"], client.receive }
    assert_equal '"n*"', told(clients.first, "subscription?(pattern: 'n*')")
    assert_equal "true", told(clients.first, "unsubscribe('n*')")
  end

  def test_streams_of_events_were_not_there_yet
    assert_equal 200, event_stream(peers("Peer")).status
  rescue Fairlead::Test::EventStream::Malformed
    flunk "the request was taken for an event stream"
  end

  private

  def peers(handler, *arguments, status: 0)
    app = "env['upgrade.websocket'] = #{handler} if env['upgrade.websocket?']\n" \
          "[env['upgrade.websocket?'] ? #{status} : 200, { 'x-application' => 'kept' }, []]"
    serve(unlinted(app, setup: SETUP), *arguments)
  end
end
