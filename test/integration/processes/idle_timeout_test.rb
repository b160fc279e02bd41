# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/web_socket"

# A server with an idle_timeout ends when it has no requests and connections.
class IdleTimeoutTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { sleep env['QUERY_STRING'].to_f; [200, {}, ['ok']] }"

  SHAPES = [[], ["-w", 2]].freeze

  def test_it_ends_when_there_was_no_request_for_the_time
    SHAPES.each do |arguments|
      server = serve(APP, "--idle-timeout", 1, *arguments)

      assert_equal 0, server.wait_exit.exitstatus
      assert_includes server.stdout, "no request for 1 s: ending"
    end
  end

  def test_an_open_connection_without_requests_does_not_keep_it
    server = serve(APP, "--idle-timeout", 1)
    client = connect(server)
    assert_equal 200, client.get.status

    assert_predicate client, :closed?
    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_requests_keep_it_however_long_they_take
    SHAPES.each do |arguments|
      server = serve(APP, "--idle-timeout", 0.5, *arguments)
      client = connect(server)

      assert_equal 200, client.get("/?1.5").status
      8.times do
        sleep 0.2 # less than the timeout, repeatedly
        assert_equal 200, client.get.status
      end
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_an_open_websocket_keeps_it
    setup = "class Handler; end\n"
    app = "#{setup}run ->(env) { env['rack.upgrade'] = Handler.new; [200, {}, []] }"
    server = serve(app, "--idle-timeout", 0.5)
    socket = Fairlead::Test::WebSocket.connect("127.0.0.1", server.port)

    refute(socket.socket.wait_readable(1.5))
    assert_predicate server, :running?
    socket.socket.close
    assert_equal 0, server.wait_exit.exitstatus
  end
end
