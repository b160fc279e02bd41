# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Every call that the server makes in a request may end in an exception, a `throw` or the end of the thread: a TracePoint
# causes it at the first call, the second, and so on. Nothing is lost, and no lock or slot stays taken.
class InterruptedCallsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SETUP = <<~'RUBY'
    require "timeout"

    def sockets = Dir.children("/proc/self/fd").count { |fd| (File.readlink("/proc/self/fd/#{fd}") rescue "").start_with?("socket:") }

    ACTIONS = {
      "raise" => -> { raise "interrupted" },
      "throw" => -> { throw :nowhere },
      "late" => -> { raise Timeout::Error },
      "kill" => -> { Thread.current.kill }
    }

    # Interrupts at that call from here on, in this thread.
    def interrupt(action, number)
      trace = TracePoint.new(:call, :c_call, :b_call) do |point|
        next if point.self == trace || (number -= 1).positive?

        trace.disable
        ACTIONS.fetch(action).call
      end
      trace.enable(target_thread: Thread.current)
      trace
    end

    # Each client has its own instance.
    class Talk
      def on_open(client) = client.write("one")
      def on_close(client) = client.env
    end

    class Odd
      def initialize(*parts) = @parts = parts
      def each(&block) = @parts.each(&block)
      def close = @parts.frozen?
      def to_s = "200"
      def to_i = 200
    end
  RUBY

  HANDSHAKE = { "connection" => "upgrade", "upgrade" => "websocket", "sec-websocket-version" => "13",
                "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ==" }.freeze

  # The server calls the status, the fields and the body.
  APP = <<~'RUBY'
    _, kind, action, number = env["PATH_INFO"].split("/")
    next [200, {}, ["#{sockets} #{GC.start}"]] if kind == "sockets"

    GC.stress = true if action == "stress"
    env["rack.response_finished"] << ->(*) { GC.stress = false }
    triple = {
      "array" => [Odd.new, { "x-a" => Odd.new }, [+"one", +"two"]],
      "each" => [200, [["x-a", Odd.new], ["x-b", "c"]].each, Odd.new("one", "two")],
      "chunks" => [200, { "transfer-encoding" => "chunked" }, Odd.new("3\r\none\r\n", "0\r\n\r\n")],
      "path" => [200, {}, File.open("file")],
      "stream" => [200, {}, ->(stream) { stream.write("one"); stream << "two"; stream.close }],
      "kept" => [200, {}, ->(stream) { Thread.new { stream.write("one"); stream.close } }],
      "upgrade" => [200, {}, []],
      "partial" => [200, { "rack.hijack" => ->(io) { io.write("one"); io.close } }, []]
    }
    trace = interrupt(action, Integer(number, 10)) unless action == "stress"
    env["rack.upgrade"] = Talk if kind == "upgrade"
    env["rack.early_hints"]&.call("link" => "</a>")
    next triple.fetch(kind) unless kind == "full"

    begin
      io = env["rack.hijack"].call
    ensure
      trace&.disable
      io&.close
    end
  RUBY
  KINDS = %w[array each chunks path stream kept partial full].freeze

  %w[raise throw late kill].each do |action|
    define_method("test_nothing_is_lost_if_any_call_ends_by_#{action}") do
      assert_nothing_lost { |kind| 1.upto(24) { |number| finish("/#{kind}/#{action}/#{number}") } }
    end
  end

  %w[raise kill].each do |action|
    define_method("test_nothing_is_lost_if_any_call_in_a_fiber_ends_by_#{action}") do
      assert_nothing_lost("--fiber-per-request") { |kind| 1.upto(24) { |number| finish("/#{kind}/#{action}/#{number}") } }
    end

    define_method("test_nothing_is_lost_if_any_call_for_an_upgrade_ends_by_#{action}") do
      assert_nothing_lost(kinds: ["upgrade"]) { |kind| 1.upto(30) { |number| upgrade("/#{kind}/#{action}/#{number}") } }
    end
  end

  def test_nothing_is_lost_if_the_collector_runs_at_each_allocation
    assert_nothing_lost { |kind| finish("/#{kind}/stress/0") }
  end

  private

  # Longest time for a part of a response, in seconds: a collection at each allocation takes processor time, of which a busy machine has
  # little.
  PATIENCE = 120

  def assert_nothing_lost(*arguments, kinds: KINDS, &block)
    @server = serve(unlinted(APP, setup: SETUP), "-t", "2:2", "--early-hints", "--compress", *arguments, files: { "file" => "one" })
    before = open_sockets
    kinds.each(&block)

    wait_until("the sockets to be closed") { open_sockets&.<=(before) }
    refute_match(/\[BUG\]|panicked|already borrowed/, @server.stderr)
    assert_predicate @server, :running?
  end

  # Returns nil if this request met a leftover interruption.
  def open_sockets
    Integer(get(@server, "/sockets").body, 10, exception: false)
  rescue Fairlead::Test::HttpClient::CutOff
    nil
  end

  # The upgrade may be refused or not; then the client disconnects.
  def upgrade(path)
    client = connect(@server).request("GET", path, HANDSHAKE)
    nil while client.answer.status == 103
  rescue Fairlead::Test::HttpClient::CutOff
    nil
  ensure
    client.close
  end

  # The response may be anything, but the connection ends.
  def finish(path)
    client = connect(@server, seconds: PATIENCE).request("GET", path, { "connection" => "close", "accept-encoding" => "gzip" })
    client.rest
    client.close
  rescue Fairlead::Test::Waiting::Expired => e
    raise e.class, "#{path}: #{e.message}"
  end
end
