# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/web_socket"

# A stack that overflows while finalizers wait: Ruby runs them at the end of the full stack, and they overflow it again. Then the thread
# would make no check for interrupts any more, until it raises another exception.
class StackOverflowTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~'RUBY'
    require "timeout"

    def dive = dive + 1

    # Every allocation collects garbage: also the only one of the dive, at its end.
    def overflow
      10.times { ObjectSpace.define_finalizer(Object.new, proc {}) }
      GC.stress = true
      dive
    rescue SystemStackError
      GC.stress = false
    end

    # Its last code in this process rescues an exception, after the end of the handler.
    class Broken < Fairlead::PubSub::Engine
      def subscribe(*) = nil
      def unsubscribe(*) = raise("broken")
    end
    Fairlead::PubSub.attach(Broken.new)

    class Leaving
      def initialize(leave) = @leave = leave
      def on_open(client) = client.subscribe("channel")
      def on_close(_) = @leave.call
    end

    def raised_late
      thread = Thread.current
      Thread.new { sleep 0.1; thread.raise("late") }
    end

    # Writes until the timeout.
    def pieces
      Enumerator.new do |out|
        Timeout.timeout(0.01) { loop { out << "piece" } }
      rescue Timeout::Error
        out << "the end"
      end
    end

    run(lambda do |env|
      case env["PATH_INFO"]
      when "/overflow" then overflow
      when "/deferred" then Fairlead.defer { overflow }
      when "/late" then raised_late && overflow
      when "/leaving" then env["rack.upgrade"] = Leaving.new(-> { raised_late && overflow && sleep(0.3) })
      when "/timeout" then next [200, {}, pieces]
      end
      [200, {}, ["done"]]
    end)
  RUBY

  def test_a_timeout_comes_in_the_next_request_of_the_thread
    client = connect(serve(APP, "-t", "1:1"))
    %w[/overflow /deferred /overflow].each do |path|
      assert_equal("done", client.get(path).body)
      client.request("GET", "/timeout")
      assert_match(/the end\r\n0\r\n\r\n\z/, received(client), path)
    end
  end

  def test_an_exception_for_a_thread_that_waits_replaces_it_and_the_server_ends
    server = serve(APP, "-t", "2:2")
    assert_equal("done", get(server, "/late").body)
    wait_until("the exception") { server.stderr.include?("late") }
    assert_equal("done", get(server, "/").body)
    assert_predicate(server.stop, :success?)
  end

  # The exception that ends the thread comes while other code of the application still runs in it.
  def test_a_thread_ends_by_its_exception_although_another_one_was_rescued_since
    server = serve(APP, "-t", "2:2")
    client = Fairlead::Test::WebSocket.connect("127.0.0.1", server.port, "/leaving")
    client.close(1000)
    wait_until("the exception") { server.stderr.match?(/ended: .*late/) }
    assert_match(/unsubscribe failed: .*broken/, server.stderr)
    assert_equal("done", get(server, "/").body)
    assert_predicate(server.stop, :success?)
  end

  private

  # Reads for some seconds, but not an endless body.
  def received(client)
    bytes = +""
    ending = monotonic + 5
    bytes << client.socket.readpartial(1 << 16) until bytes.end_with?("\r\n0\r\n\r\n") || monotonic > ending
    bytes[-100..]
  end
end
