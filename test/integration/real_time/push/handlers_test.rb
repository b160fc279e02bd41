# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Objects that can be a handler, and the replacement of a handler by another one.
class HandlersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  KINDS = {
    "an instance" => "Class.new { def on_message(client, data) = client.write(data) }.new",
    "a class" => "Class.new { def self.on_message(client, data) = client.write(data) }",
    "a module" => "Module.new { def self.on_message(client, data) = client.write(data) }",
    "an object that answers late" => "Late.new"
  }.freeze

  LATE = <<~RUBY
    class Late
      def respond_to_missing?(name, *) = name == :on_message
      def method_missing(name, client, data) = name == :on_message ? client.write(data) : super
    end
  RUBY

  def test_anything_that_has_the_callbacks_is_a_handler
    KINDS.each do |kind, code|
      server = serve(unlinted("env['rack.upgrade'] = #{code}; [200, {}, []]", setup: LATE))

      assert_equal [:text, "echo"], web_socket(server).send_text("echo").receive, kind
    end
  end

  def test_every_callback_is_optional
    server = serve(unlinted("env['rack.upgrade'] = Object.new; [200, {}, []]"))
    client = web_socket(server)
    client.send_text("for nobody").ping("pong")

    assert_equal "pong", client.receive_pong
    client.close(1000)
    assert_equal 1000, client.receive_close.first
    assert_empty log_lines(server)
  end

  def test_one_handler_may_serve_many_clients
    server = serve(unlinted(<<~RUBY, setup: "SHARED = Class.new { def on_message(client, data) = client.write(data + client.env['PATH_INFO']) }.new"))
      env["rack.upgrade"] = SHARED
      [200, {}, []]
    RUBY
    clients = %w[/a /b /c].map { |path| web_socket(server, path) }

    assert_equal(%w[m/a m/b m/c], clients.each { |client| client.send_text("m") }.map { |client| client.receive.last })
  end

  # The collector must not be told about immediate values: with an old handler, that would crash.
  def test_what_is_no_object_can_be_a_handler_without_callbacks
    server = pushing(CONSOLE)
    client = web_socket(server)
    told(client, "5.times { GC.start }")
    %w[:symbol true 1 1.5].each do |value|
      assert_equal value, told(client, "client.handler = #{value}; client.handler.tap { client.handler = self }")
    end

    assert_served(server, client)
  end

  REPLACED = <<~'RUBY'
    class Named
      def initialize(name) = @name = name
      def on_open(client) = Notes.add("#{@name} open #{client.handler.equal?(self)}")
      def on_close(client) = Notes.add("#{@name} close")

      def on_message(client, data)
        client.handler = data == "nobody" ? nil : Named.new(data) if data != "who?"
        client.write(@name)
      end
    end
  RUBY

  def test_a_new_handler_takes_over_when_the_old_one_is_told
    server = serve(unlinted("env['rack.upgrade'] = Named.new('first'); [200, {}, []]", setup: REPLACED))
    client = web_socket(server)

    assert_equal [:text, "first"], client.send_text("second").receive
    assert_equal [:text, "second"], client.send_text("who?").receive
    client.close
    client.receive_close
    assert_equal ["first open true", "first close", "second open true", "second close"], wait_for_notes(server, 4)
  end

  def test_messages_that_have_arrived_already_go_to_the_new_handler
    server = serve(unlinted("env['rack.upgrade'] = Named.new('first'); [200, {}, []]", setup: REPLACED))
    client = web_socket(server)
    client.send_raw(%w[second who? third who?].map { |text| Fairlead::Test::WebSocket::Frames.build(1, text) }.join)

    assert_equal %w[first second second third], client.receive_all(4)
  end

  def test_no_handler_closes_the_connection
    server = serve(unlinted("env['rack.upgrade'] = Named.new('first'); [200, {}, []]", setup: REPLACED))
    client = web_socket(server)
    client.send_text("nobody")
    client.receive_close(skip: true)

    assert client.ended?
    assert_equal ["first open true", "first close"], wait_for_notes(server, 2)
  end

  def test_subscriptions_stay_with_the_client_when_its_handler_changes
    server = pushing(Fairlead::Test::RealTimeServing::CONSOLE)
    client = web_socket(server)

    assert_equal '"news"', told(client, "client.subscribe('news')")
    told(client, "client.handler = Handler.new; 1")
    assert_equal "true", told(client, "client.publish('news', 'item')")
    assert_equal [:text, "item"], client.receive
  end
end
