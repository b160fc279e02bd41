# frozen_string_literal: true

require "test_helper"
require "logger"
require "socket"
require "stringio"

# With servers that fail. test/integration/publish_socket has real ones.
class RunningServerTest < Minitest::Test
  include Fairlead::Test::Folders

  def setup
    @log = StringIO.new
    @connections = 0
  end

  def teardown
    @publisher&.close
    @listener&.close
    @thread&.join
  end

  def test_a_message_without_a_reply_is_sent_again_once
    with_server(->(socket) { socket.write("\0" * 5) unless @connections == 1 }) do
      assert publish("hello")
      assert_equal 2, @connections
      assert_empty @log.string
    end
  end

  def test_a_server_that_always_closes_is_given_up_and_named_once
    with_server(->(_) {}) do
      3.times { refute publish("hello") }
      assert_equal 6, @connections
    end

    assert_equal ["ERROR the server on PATH cannot be reached: it has closed the connection; messages of this process are lost meanwhile"], log
  end

  def test_workers_that_have_not_taken_a_message_are_counted
    with_server(->(socket) { socket.write([1, 3].pack("CN")) }) { refute publish("hello") }

    assert_equal ["WARN the server on PATH: 3 workers did not take a message in time"], log
  end

  def test_an_unknown_reply_is_named
    with_server(->(socket) { socket.write([9, 0].pack("CN")) }) { refute publish("hello") }

    assert_match(/cannot be reached: it answers 9, which this version of Fairlead does not know/, log.first)
  end

  def test_the_end_of_an_outage_is_logged
    in_folder({}) do
      @publisher = publisher("publish.sock")
      2.times { refute publish("lost") }
      serve("publish.sock", ->(socket) { socket.write("\0" * 5) })
      assert publish("hello")
    end

    assert_match(/\AERROR no server listens on PATH: start it, or set publish_socket/, log.first)
    assert_equal "INFO the server on PATH is back; 2 messages were lost", log.last
  end

  def test_a_path_that_is_no_socket_or_too_long_is_an_outage
    in_folder("file" => "") do
      refute publisher("file").publish("news", "hello")
      Dir.mkdir("x" * 110)
      UNIXServer.new("socket").close
      File.rename("socket", "#{"x" * 110}/socket")
      refute publisher("#{"x" * 110}/socket").publish("news", "hello")
    end

    assert_match(/: it is not a socket; .*: too long unix socket path/m, log.join)
  end

  private

  # Serves connections in turn: reads a request, and calls +reply+.
  def serve(path, reply)
    @listener = UNIXServer.new(path)
    @thread = Thread.new do
      loop do
        socket = @listener.accept
        @connections += 1
        socket.readpartial(1000)
        reply.call(socket)
        socket.close
      end
    rescue IOError, SystemCallError
      nil # it is closed
    end
  end

  def with_server(reply)
    in_folder({}) do
      serve("publish.sock", reply)
      @publisher = publisher("publish.sock")
      yield
    end
  end

  def publisher(path)
    @path = File.expand_path(path)
    Fairlead::PubSub::RunningServer.new(path, logger: Logger.new(@log, formatter: ->(level, _, _, text) { "#{level} #{text}\n" }))
  end

  def publish(message) = @publisher.publish("news", message)

  def log = @log.string.gsub(@path, "PATH").lines(chomp: true)
end
