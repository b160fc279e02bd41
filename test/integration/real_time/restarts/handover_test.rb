# frozen_string_literal: true

require "test_helper"
require "support/real_time"
require "support/restarts"

# Clients of rack.upgrade go on in new code: `on_handover` in the old worker, `on_takeover` in the new one. Each server has many kinds of
# clients, because a restart takes long.
class HandoverTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Restarts

  # Responds to messages with what it knows.
  COUNTER = <<~'RUBY'
    VERSION = File.read("version").strip

    class Counter
      def self.on_takeover(client, state)
        Notes.add("took #{state} in #{VERSION}")
        new(Integer(state), client)
      end

      def initialize(count = 0, client = nil)
        @count = count
        client&.subscribe("news")
      end

      def on_open(client) = client.subscribe("news")
      def on_message(client, text) = client.write("#{text} #{@count += 1} #{VERSION} #{client.env["HTTP_X_NAME"]}")
      def on_handover(_client) = @count.to_s
      def on_close(_client) = Notes.add("closed")
    end

    class Stream < Counter
      def self.on_takeover(client, state)
        client.subscribe("news")
        client.write("from #{state}")
        new
      end

      def on_open(client)
        client.subscribe("news")
        client.write("hello")
      end

      def on_handover(client) = client.env["QUERY_STRING"] == "alone" || Process.pid.to_s
    end
  RUBY

  # The signals of restarts that move all clients, and the log lines at their ends.
  ENDS = { USR1: "phased restart", USR2: "hot restart", URG: "refork" }.freeze

  # Messages of different workers have no common order.
  def test_clients_notice_nothing_of_restarts_and_get_each_message_once
    server = clients_of(COUNTER)
    sockets = %w[ann bob eve].map { |name| web_socket(server, "/Counter", headers: { "x-name" => name }) }
    streams = ["/Stream", "/Stream?alone"].map { |path| event_stream(server, path).tap { |stream| assert_equal "hello", stream.receive.data } }
    sockets.each { |client| asked(client, "hi") }
    sent = publishing(server, 600) do
      ENDS.each_with_index do |(signal, name), index|
        server.write("version", (index + 2).to_s)
        server.signal(signal)
        restarted(server, name)
      end
    end

    news = sockets.map { |client| client.receive_all(sent) } + streams.map { |stream| news_of(stream, sent) }
    news.each { |messages| assert_equal (1..sent).to_a, messages.map { |text| Integer(text, 10) }.sort }
    version = asked(sockets.first, "hi")[/\d ann/].to_i
    assert_equal %w[bob eve].map { |name| "hi 2 #{version} #{name}" }, (sockets.drop(1).map { |client| asked(client, "hi") })
    assert_operator version, :>=, 3 # a refork runs the code of its worker
    assert_empty notes(server).grep(/closed/)
    assert_empty server.stderr
  end

  # Handlers that can move.
  MOVING = <<~'RUBY'
    VERSION = File.read("version").strip

    # Its block is an object of the old code.
    class Block
      def self.on_takeover(client, state)
        sleep 0.005 until File.exist?("go")
        new.tap { |handler| handler.on_open(client) }
      end

      def on_open(client) = client.subscribe("blocks") { |_, text| client.write("#{text} in #{VERSION}") }
      def on_handover(_client) = ""
      def on_message(client, _) = client.write("here")
    end

    # The new code needs no block any more.
    class Blockless < Block
      def on_open(client)
        return super if VERSION == "1"

        client.subscribe("blocks")
      end
    end

    # Does not subscribe again.
    class Silent
      def self.on_takeover(*) = new
      def on_open(client) = client.subscribe("silence")
      def on_handover(_client) = "\xFF".b
      def on_message(client, text) = client.write("#{text} #{VERSION}")
    end

    # Shows its env.
    class Env
      def self.on_takeover(client, _state)
        RequestLint.new(->(_env) {}).call(client.env)
        new
      end

      def on_handover(_client) = ""
      def on_message(client, key) = client.write(client.env[key].inspect)
    end

    # A class is the handler.
    class Still
      class << self
        def on_handover(_client) = name
        def on_takeover(_client, state) = Object.const_get(state)
        def on_message(client, text) = client.write("#{text} #{name} #{VERSION}")
      end
    end

    class Former
      def on_message(client, text)
        client.defer { Notes.add("deferred #{text}") }
        client.handler = Other.new
      end

      def on_handover(_client) = raise("the former handler")
    end

    # The child returns, too, and refuses the client.
    class Forking
      def self.on_takeover(*) = fork ? new : nil
      def on_handover(_client) = fork ? "x" : nil
      def on_message(client, text) = client.write("#{text} #{VERSION}")
    end

    class Other
      def self.on_takeover(_client, state) = new.tap { Notes.add("took #{state}") }
      def on_handover(_client) = "other"
      def on_message(client, text) = client.write("other #{text}")
    end
  RUBY

  KEYS = %w[PATH_INFO QUERY_STRING SCRIPT_NAME REQUEST_METHOD REQUEST_URI HTTP_COOKIE HTTP_HOST SERVER_NAME SERVER_PORT REMOTE_ADDR
            SERVER_PROTOCOL SERVER_SOFTWARE rack.url_scheme rack.version HTTP_UPGRADE HTTP_SEC_WEBSOCKET_KEY].freeze
  OFFERS = { "rack.upgrade" => "nil", "rack.upgrade?" => "nil", "rack.hijack" => "nil", "rack.hijack?" => "false",
             "rack.response_finished" => "[]" }.freeze

  def test_blocks_subscriptions_env_and_handlers_after_a_restart
    server = clients_of(MOVING, workers: 1, threads: 3)
    block, blockless, silent, still, former = %w[Block Blockless Silent Still Former].map { |name| web_socket(server, "/#{name}") }
    forking = web_socket(server, "/Forking")
    env = web_socket(server, "/Env?a=b", headers: { "cookie" => "c=d" })
    before = KEYS.to_h { |key| [key, asked(env, key)] }
    assert_equal ["here", "here", "hi 1", "hi Still 1"], ([block, blockless, silent, still].map { |client| asked(client, "hi") })
    former.send_text("x")
    wait_for_notes(server, 1)
    server.write("version", "2")
    server.signal(:USR1)
    restarted(server)
    3.times { |number| requested(server, "Fairlead.publish('blocks', '#{number}')") }
    server.write("go", "")

    assert_equal ["0 in 2", "1 in 2", "2 in 2"], block.receive_all(3)
    assert_equal %w[0 1 2], blockless.receive_all(3)
    requested(server, "Fairlead.publish('blocks', '3')")
    assert_equal ["3 in 2", "3"], [block.receive_all(1), blockless.receive_all(1)].flatten
    assert_equal ["hi 2", "hi Still 2", "hi 2"], ([silent, still, forking].map { |client| asked(client, "hi") })
    assert_equal "other y", asked(former, "y")
    requested(server, "Fairlead.publish('silence', 'nobody')")
    assert_equal "hi 2", asked(silent, "hi")
    assert_equal before.merge(OFFERS), (KEYS + OFFERS.keys).to_h { |key| [key, asked(env, key)] }
    assert_equal ["deferred x", "took other"], notes(server)
    # The ones of the block and of the client without one are left.
    wait_until("the end of the subscription") { requested(server, "Fairlead.stats[:engines].sum { |engine| engine[:subscriptions] }") == "2" }
    assert_empty server.stderr
  end

  # The old code of a handler, and the new one. The clients are closed by the old worker, or by the new one.
  REFUSED = {
    old: {
      "Plain" => ["def on_message(client, _) = client.write('here')", ""], "Unwilling" => ["def on_handover(_) = nil", ""],
      "Raising" => ["def on_handover(_) = raise('no state')", ""], "Large" => ["def on_handover(_) = 'x' * (1 << 20)", ""]
    },
    new: {
      "Gone" => ["def on_handover(_) = 'x'", "Object.send(:remove_const, :Gone)"], "Old" => ["def on_handover(_) = 'x'", ""],
      "Refusing" => ["def on_handover(_) = 'x'", "def Refusing.on_takeover(*) = nil"],
      "Broken" => ["def on_handover(_) = 'x'", "def Broken.on_takeover(*) = raise('not me')"],
      "Killing" => ["def on_handover(_) = 'x'", "def Killing.on_takeover(*) = Thread.exit"]
    }
  }.freeze
  REASON = "the new version of the application cannot take over the client"
  LINES = [/no state/, /a client of Large cannot move to another process: its state and its request have/, /not me/, /Old\.on_takeover is missing/,
           /clients of Gone cannot be taken over: there is no such class/, /with a handler of an anonymous class cannot move/,
           /was killed; another one/].freeze

  def test_clients_that_cannot_move_are_told_to_connect_again
    code = REFUSED.values.flat_map(&:to_a).map { |name, (old, new)| "class #{name}; #{old}; end\nif VERSION == '2'\n#{new}\nend\n" }
    server = clients_of("VERSION = File.read('version').strip\n#{code.join}")
    clients = REFUSED.transform_values { |kinds| kinds.keys.map { |name| web_socket(server, "/#{name}") } }
    clients[:old] << web_socket(server, "/Unwilling?anonymous")
    clients.values.flatten.each { |client| client.ping && client.receive_pong }
    server.write("version", "2")
    server.signal(:USR1)

    clients[:old].each { |client| assert_equal [1012, ""], client.receive_close }
    clients[:new].each { |client| assert_equal [1012, REASON], client.receive_close }
    restarted(server)
    LINES.each { |line| wait_until("#{line.inspect} in the log") { server.stderr.match?(line) } }
    assert_equal "plain", get(server).body
  end

  private

  # Starts a server that gives each WebSocket and event stream a handler of the class in its path.
  def clients_of(code, workers: 2, threads: 2)
    app = unlinted(<<~RUBY, setup: code)
      unless env["rack.upgrade?"]
        code = env["HTTP_X_CODE"]
        next [200, { "content-type" => "text/plain" }, [code ? eval(code).inspect : "plain"]]
      end
      handler = Object.const_get(env["PATH_INFO"].delete("/"))
      handler = Class.new(handler) { def on_handover(_) = "x" } if env["QUERY_STRING"] == "anonymous"
      env["rack.upgrade"] = handler
      [200, {}, []]
    RUBY
    versioned("-w", workers, "-t", threads, "--drain-spread", "0.2", app: app)
  end

  def asked(client, text)
    client.send_text(text)
    client.receive.last
  end

  # Publishes numbers while the block runs, at most that many. Returns the number of them.
  def publishing(server, most)
    sent = 0
    ending = false
    publisher = Thread.new { requested(server, "Fairlead.publish('news', '#{sent += 1}')") until ending || sent == most }
    yield
    ending = true
    publisher.join
    sent
  end

  # The news among the events of a stream.
  def news_of(stream, count)
    news = []
    news << stream.receive.data until news.grep(/\A\d+\z/).size == count
    news.grep(/\A\d+\z/)
  end
end
