# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Fairlead::Client in handlers and in the rest of the application.
class ClientTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  def test_the_encoding_of_what_arrives_says_what_it_is
    server = pushing("def on_message(client, data) = client.write([data.encoding.name, data.valid_encoding?, data.frozen?, data.size].inspect)")
    client = web_socket(server)

    assert_equal '["UTF-8", true, false, 3]', client.send_text("äöü").receive.last
    assert_equal '["ASCII-8BIT", true, false, 6]', client.send_binary("äöü").receive.last
    assert_equal '["UTF-8", true, false, 0]', client.send_text("").receive.last
  end

  # Written object => received message.
  WRITTEN = {
    "'ä'" => [:text, "ä"], "'ä'.b" => [:binary, "ä".b], "''" => [:text, ""], "''.b" => [:binary, "".b],
    "'a'.encode('UTF-16LE')" => [:binary, "a\0".b], "7" => [:text, "7"], ":name" => [:text, "name"], "nil" => [:text, ""],
    "'x' * 70_000" => [:text, "x" * 70_000], "'frozen'.freeze" => [:text, "frozen"]
  }.freeze

  def test_the_encoding_of_what_is_written_decides_how_it_is_sent
    client = web_socket(pushing(CONSOLE))

    WRITTEN.each do |code, message|
      client.send_text("client.write(#{code})")
      assert_equal [message, [:text, "= true"]], [client.receive, client.receive], code
    end
  end

  def test_text_that_is_not_utf8_never_reaches_the_client_as_text
    client = web_socket(pushing(CONSOLE))
    client.send_text('client.write("\xff")')

    assert_includes [[:binary, "\xff".b], [:text, "! ArgumentError"], [:text, "\ufffd"]], client.receive
  end

  # A String by `to_str`, as everywhere; `to_s` is for objects without `to_str`, not after its failure.
  def test_what_a_conversion_raises_or_throws_is_passed_on
    client = web_socket(pushing(<<~RUBY))
      Odd = Struct.new(:code) do
        def to_str = instance_eval(code)
        def to_s = "to_s"
      end

      def on_message(client, code)
        result = catch(:out) { client.write(Odd.new(code)) }
        client.write("= \#{result}")
      rescue IOError => e
        client.write("! \#{e.message}")
      end
    RUBY

    assert_equal [:text, "! no"], client.send_text("raise(IOError, 'no')").receive
    assert_equal [:text, "= thrown"], client.send_text("throw(:out, 'thrown')").receive
    assert_equal [[:text, "it"], [:text, "= true"]], [client.send_text("'it'").receive, client.receive]
  end

  def test_what_is_written_can_be_changed_afterwards
    client = web_socket(pushing(<<~RUBY))
      def on_message(client, data)
        text = +"written"
        client.write(text)
        text.replace("changed")
      end
    RUBY

    assert_equal [:text, "written"], client.send_text("go").receive
  end

  def test_a_client_knows_its_request
    server = serve(unlinted(<<~RUBY))
      env["app.note"] = "kept"
      env["rack.upgrade"] = Class.new do
        def self.on_open(client)
          client.write([client.env["PATH_INFO"], client.env["app.note"], client.env["HTTP_X"], client.protocol, client.handler == self].inspect)
        end
      end
      [200, {}, []]
    RUBY

    assert_equal ["/a", "kept", "y", :websocket, true].inspect, web_socket(server, "/a", headers: { "x" => "y" }).receive.last
    assert_equal ["/b", "kept", "z", :sse, true].inspect, event_stream(server, "/b", headers: { "x" => "z" }).receive.data
  end

  # Code => result while the connection is open.
  OPEN = {
    "client.class" => "Fairlead::Client", "client.open?" => "true", "client.pubsub? ? 1 : 0" => "1", "client.protocol" => ":websocket",
    "client.pending.class" => "Integer", "client.timeout.class" => "Integer", "client.equal?(@client)" => "true",
    "(client.timeout = 7) && client.timeout" => "7", "(client.timeout = 0) && client.timeout" => "0",
    "(client.timeout = 255) && client.timeout" => "255", "client.timeout = 256" => "! RangeError", "client.timeout = -1" => "! RangeError",
    "client.timeout = 'x'" => "! TypeError", "Fairlead::Client.new" => "! TypeError", "client.close(999)" => "! ArgumentError",
    "client.handler.class" => "Handler"
  }.freeze

  def test_what_an_open_client_says
    client = web_socket(pushing(CONSOLE))

    OPEN.each { |code, result| assert_equal result, told(client, code), code }
  end

  # Code => result afterwards.
  CLOSED = {
    "open?" => "false", "pending" => "-1", "write('x')" => "false", "close" => "nil", "timeout" => "nil", "subscribe('x')" => "nil",
    "unsubscribe('x')" => "nil", "protocol" => ":websocket", "env['PATH_INFO']" => '"/"', "publish('x', 'y')" => "true"
  }.freeze

  def test_what_a_closed_client_says
    server = pushing("def on_open(client) = (KEPT << client)\ndef on_close(client) = Notes.add('closed')", setup: "KEPT = []")
    web_socket(server).drop
    wait_for_notes(server, 1)

    CLOSED.each { |code, result| assert_equal result, requested(server, "KEPT.first.#{code}"), code }
  end

  def test_close_comes_after_what_was_written
    client = web_socket(pushing("def on_message(client, data) = 100.times { |n| client.write(n) }.then { client.close(4001, data) }"))
    client.send_text("grüße")

    assert_equal ("0".."99").to_a, client.receive_all(100)
    assert_equal [4001, "grüße"], client.receive_close
    assert client.ended?
  end

  def test_nothing_is_sent_behind_the_close
    client = web_socket(pushing("def on_message(client, data) = (client.close(1000); Notes.add([client.write('late'), client.open?].inspect))"))

    assert_equal [1000, ""], client.send_text("go").receive_close
    assert client.ended?
  end

  def test_a_code_is_optional
    client = web_socket(pushing("def on_message(client, data) = client.close"))

    assert_includes [[nil, ""], [1000, ""]], client.send_text("go").receive_close
    assert client.ended?
  end

  def test_a_client_that_does_not_answer_the_goodbye_does_not_keep_the_connection
    server = pushing("def on_message(client, data) = client.close\ndef on_close(client) = Notes.add('closed')")
    socket = TCPSocket.new("127.0.0.1", server.port)
    client = adopt(socket)
    client.request("GET", "/", Fairlead::Test::WebSocket::Handshake::FIELDS)
    assert_equal 101, client.answer.status
    client.write(Fairlead::Test::WebSocket::Frames.build(1, "go"))

    assert_equal "\x88".b, client.rest[0].b
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  def test_threads_of_the_application_write_whole_messages_in_their_order
    client = web_socket(pushing(<<~RUBY))
      def on_message(client, data)
        5.times { |thread| Thread.new { 200.times { |number| client.write("\#{thread} \#{number} \#{'x' * number}") } } }
      end
    RUBY
    client.send_text("go")
    received = client.receive_all(1000).map { |text| text.split.first(2).map(&:to_i) }.group_by(&:first)

    assert_equal [(0...200).to_a] * 5, received.sort.map { |_, messages| messages.map(&:last) }
  end

  def test_a_client_can_be_written_to_from_a_request
    server = pushing("def on_open(client) = (KEPT << client; client.write('open'))", setup: "KEPT = []")
    client = web_socket(server)
    client.receive

    assert_equal "true", requested(server, "KEPT.first.write('hello')")
    assert_equal [:text, "hello"], client.receive
    assert_equal "nil", requested(server, "KEPT.first.close(4002)")
    assert_equal 4002, client.receive_close.first
  end
end
