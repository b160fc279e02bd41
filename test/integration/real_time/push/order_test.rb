# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The order of callbacks: on_open first, on_close once and last, messages in their order, and never two callbacks of one
# client at once, with any number of threads.
class CallbackOrderTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  parallelize_me!

  def test_nothing_comes_before_on_open_has_returned
    server = pushing(<<~RUBY, "-t", 5)
      def on_open(client)
        client.subscribe("early") { |_, message| Notes.add("published \#{message}") }
        Fairlead.publish("early", "one")
        sleep 0.01 until File.exist?("go")
        Notes.add("opened")
      end
      def on_message(client, data) = Notes.add("message \#{data}")
    RUBY
    client = web_socket(server)
    3.times { |number| client.send_text(number.to_s) }
    assert_equal "plain", get(server).body
    assert_empty notes(server)
    server.write("go", "")

    noted = wait_for_notes(server, 5)
    assert_equal "opened", noted.first
    assert_equal ["message 0", "message 1", "message 2"], noted.grep(/message/)
  end

  ONE_AT_A_TIME = <<~RUBY
    def initialize = (@inside = 0)

    def on_message(client, data)
      @inside += 1
      Thread.pass
      sleep 0.0005 * (data.to_i % 3)
      client.write(@inside == 1 ? data : "two at once")
      @inside -= 1
    end
  RUBY

  def test_messages_of_a_client_come_in_order_and_one_at_a_time
    server = pushing(ONE_AT_A_TIME, "-t", 5)
    clients = Array.new(4) { web_socket(server) }
    sent = (0...150).map(&:to_s)
    clients.each { |client| client.send_raw(sent.map { |text| Fairlead::Test::WebSocket::Frames.build(1, text) }.join) }
    received = clients.map { |client| client.receive_all(sent.size) }

    assert_equal [sent] * 4, received
  end

  def test_messages_and_publications_of_a_client_never_run_at_once
    server = pushing(<<~RUBY, "-t", 5)
      #{ONE_AT_A_TIME}
      def on_open(client)
        client.subscribe("all") { |_, message| on_message(client, message) }
        client.write("open")
      end
    RUBY
    client = web_socket(server)
    assert_equal [:text, "open"], client.receive
    publisher = Thread.new { 100.times { |number| requested(server, "Fairlead.publish('all', '#{number}')") } }
    100.times { |number| client.send_text(number.to_s) }
    publisher.join

    refute_includes client.receive_all(200), "two callbacks at once"
  end

  def test_deferred_blocks_run_in_the_turn_of_the_client
    client = web_socket(pushing(<<~'RUBY', "-t", 5))
      def on_message(client, data)
        return client.defer { raise "it is logged" } if data == "raise"
        return client.write(client.defer.inspect) if data == "nothing"

        Thread.new { client.defer { client.write("thread") } }.join
        client.write("#{client.defer { client.write("deferred") }}")
        Fairlead.defer { client.defer { client.write("another thread of the server") } }
        sleep(0.05)
        client.write("end")
      rescue ArgumentError => e
        client.write(e.class.name)
      end
    RUBY
    %w[raise nothing go].each { |text| client.send_text(text) }

    assert_equal %w[ArgumentError true end thread deferred], client.receive_all(5)
    assert_equal "another thread of the server", client.receive.last
  end

  def test_nothing_is_deferred_after_the_end
    server = pushing("def on_close(client) = File.write('closed', client.defer { File.write('never', '') }.inspect)")
    web_socket(server).close(1000)
    wait_until("the end") { File.exist?(server.path("closed")) && !File.empty?(server.path("closed")) }

    assert_equal "false", File.read(server.path("closed"))
    assert_served server
    refute_path_exists server.path("never")
  end

  def test_callbacks_of_different_clients_run_at_once
    server = pushing(<<~RUBY, "-t", 2)
      def on_message(client, data)
        File.write(data, "")
        sleep 0.01 until File.exist?("a") && File.exist?("b")
        client.write("met")
      end
    RUBY
    clients = %w[a b].map { |name| web_socket(server).send_text(name) }

    assert_equal([[:text, "met"]] * 2, clients.map(&:receive))
  end

  # Cause of the end => code that a client runs, or nothing if the test causes it.
  CLOSED = <<~'RUBY'
    def on_message(client, data)
      case data
      when "close" then client.close
      when "close with a code" then client.close(4000, "enough")
      when "nobody" then client.handler = nil
      when "wait"
        Notes.add("waiting")
        sleep 0.01 until File.exist?("go")
        Notes.add("waited")
      end
      Notes.add("returned") if data.start_with?("close")
    end

    def on_close(client)
      Notes.add([:closed, client.open?, client.pending, client.write("late"), client.timeout].inspect)
    end
  RUBY

  LAST = [:closed, false, -1, false, nil].inspect

  ENDINGS = {
    "the client says goodbye" => ->(client) { client.close(1000) },
    "the client closes its connection" => ->(client) { client.drop },
    "the client resets its connection" => ->(client) { client.drop(reset: true) },
    "the client closes half of it" => ->(client) { client.half_close },
    "the client breaks the protocol" => ->(client) { client.send_raw("\xff\xff").tap(&:receive_close).drop },
    "the application closes" => ->(client) { client.send_text("close").receive_close },
    "the application closes with a code" => ->(client) { client.send_text("close with a code").receive_close },
    "the application takes its handler away" => ->(client) { client.send_text("nobody").receive_close }
  }.freeze

  ENDINGS.each do |ending, act|
    define_method("test_on_close_comes_once_and_last_when_#{ending.tr(" ", "_")}") do
      server = pushing(CLOSED, "-t", 5)
      act.call(web_socket(server))
      wait_for_notes(server, 1)
      assert_served(server)

      noted = wait_until("on_close") { (lines = notes(server)).include?(LAST) && lines }
      assert_equal 1, noted.count { |line| line.start_with?("[:closed") }
      assert_equal LAST, noted.last
    end
  end

  # Like browsers over HTTP/2, where the close frame ends the client's half of the stream.
  LAST_WORDS = {
    "its_close_frame" => [->(client) { client.close(1000) }, 1000],
    "a_violation" => [->(client) { client.send_raw("\xff\xff") }, 1002]
  }.freeze

  LAST_WORDS.each do |words, (act, code)|
    define_method("test_a_client_that_closes_half_at_once_after_#{words}_is_answered_when_the_callback_has_run") do
      server = pushing(CLOSED, "-t", 5)
      client = web_socket(server).send_text("wait")
      assert_equal ["waiting"], wait_for_notes(server, 1)
      act.call(client)
      client.half_close
      3.times { assert_served(server) }
      server.write("go", "")

      assert_equal code, client.receive_close.first
      assert_equal ["waiting", "waited", LAST], wait_for_notes(server, 3)
    end
  end

  def test_on_close_waits_for_a_callback_that_runs
    server = pushing(CLOSED, "-t", 5)
    client = web_socket(server).send_text("wait")
    assert_equal ["waiting"], wait_for_notes(server, 1)
    client.drop(reset: true)
    3.times { assert_served(server) }
    assert_equal ["waiting"], notes(server)
    server.write("go", "")

    assert_equal ["waiting", "waited", LAST], wait_for_notes(server, 3)
  end

  def test_messages_that_came_before_the_end_are_heard
    server = pushing("def on_message(client, data) = Notes.add(data)\ndef on_close(client) = Notes.add('closed')", "-t", 5)
    client = web_socket(server)
    client.send_raw((1..20).map { |number| Fairlead::Test::WebSocket::Frames.build(1, number.to_s) }.join)
    client.close(1000)

    assert_equal [*"1".."20", "closed"], wait_for_notes(server, 21)
  end
end
