# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Callbacks that raise: each exception is logged once, with its request, and the connection stays open.
class FailingHandlersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  ECHO = "def on_message(client, data) = (raise KeyError, 'in on_message' if data == 'raise'; client.write(data))"

  # Callback => failing definition.
  FAILING = {
    "on_open" => "def on_open(client) = raise(KeyError, 'in on_open')",
    "on_drained" => "def on_drained(client) = raise(KeyError, 'in on_drained')",
    "on_close" => "def on_close(client) = raise(KeyError, 'in on_close')",
    "a subscription" => "def on_open(client) = client.subscribe('x') { raise KeyError, 'in a subscription' }"
  }.freeze

  FAILING.each do |callback, code|
    define_method("test_an_exception_in_#{callback.tr(" ", "_")}_is_logged_and_the_connection_goes_on") do
      server = pushing("#{ECHO}\n#{code}")
      client = web_socket(server, "/the/path")
      3.times { |number| assert_equal [:text, number.to_s], client.send_text(number.to_s).receive }
      requested(server, "Fairlead.publish('x', 'y')")
      assert_equal [:text, "last"], client.send_text("last").receive
      server.wait_for_output(/in #{callback}/) unless callback == "on_close"
      client.close(1000)

      assert_equal 1000, client.receive_close.first
      line = server.wait_for_output(/^.*in #{callback}.*$/).to_s
      assert_match(%r{error in the application: GET /the/path: .*KeyError|in #{callback} \(KeyError\)}, line)
    end
  end

  def test_each_exception_is_logged_once
    server = pushing(ECHO)
    client = web_socket(server)
    3.times { client.send_text("raise") }

    assert_equal [:text, "still there"], client.send_text("still there").receive
    assert_equal 3, server.stderr.scan("error in the application").size
    assert_served(server, client)
  end

  def test_an_exception_in_on_shutdown_does_not_keep_the_server_from_ending
    server = pushing("#{ECHO}\ndef on_shutdown(client) = raise(KeyError, 'in on_shutdown')")
    client = web_socket(server)
    server.signal(:TERM)

    assert_equal 1001, client.receive_close.first
    assert_equal 0, server.wait_exit.exitstatus
    assert_equal 1, server.stderr.scan("error in the application").size
  end

  SEVERE = { "exit" => "exit", "throw" => "throw :nowhere", "a SecurityError" => "raise SecurityError", "NoMemoryError" => "raise NoMemoryError",
             "a ScriptError" => "raise NotImplementedError", "no StandardError" => "raise Exception" }.freeze

  def test_nothing_that_a_callback_raises_ends_the_server
    server = pushing("def on_message(client, data) = data == 'fine' ? client.write(data) : eval(data)", "-t", 2)
    client = web_socket(server)

    SEVERE.each do |kind, code|
      assert_equal [:text, "fine"], client.send_text(code).send_text("fine").receive, kind
    end
    assert_served(server, client)
    assert_equal SEVERE.size, server.stderr.scan("error in the application").size
  end

  def test_a_callback_that_is_missing_a_parameter_is_an_error_like_any_other
    server = pushing("def on_open = nil\ndef on_message(client, data) = client.write(data)")
    client = web_socket(server)

    assert_equal [:text, "fine"], client.send_text("fine").receive
    assert_equal 1, server.stderr.scan("ArgumentError").size
  end
end
