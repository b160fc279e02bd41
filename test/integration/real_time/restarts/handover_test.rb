# frozen_string_literal: true

require "test_helper"
require "support/real_time"
require "support/restarts"

# Clients of rack.upgrade go on in new code: `on_handover` in the old worker, `on_takeover` in the new one.
class HandoverTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Restarts

  # The name of a kind of end => its signal, and the log line at its end.
  ENDS = { "a phased restart" => [:USR1, "phased restart"], "a hot restart" => [:USR2, "hot restart"], "a refork" => [:URG, "refork"] }.freeze

  # Responds to messages with what it knows. The code of the version that is in the file `version`.
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
  RUBY

  ENDS.each do |name, (signal, message)|
    define_method("test_a_client_notices_nothing_of_#{name.tr(" ", "_")}") do
      server = versioned_clients
      clients = %w[ann bob eve].map { |one| web_socket(server, headers: { "x-name" => one }) }
      assert_equal %w[ann bob eve].map { |one| "hi 1 1 #{one}" }, (clients.map { |client| asked(client, "hi") })
      server.write("version", "2")
      server.signal(signal)
      restarted(server, message)

      version = signal == :URG ? 1 : 2
      assert_equal %w[ann bob eve].map { |one| "hi 2 #{version} #{one}" }, (clients.map { |client| asked(client, "hi") })
      assert_equal ["took 1 in #{version}"], notes(server).uniq
      assert_operator notes(server).size, :>=, 3 # a refork moves some of them twice
      assert_empty server.stderr
    end
  end

  # Messages of different workers have no common order.
  def test_messages_of_a_channel_arrive_once
    server = versioned_clients
    clients = Array.new(4) { web_socket(server) }
    clients.each { |client| asked(client, "hi") }
    ending = false
    sent = 0
    publisher = Thread.new { requested(server, "Fairlead.publish('news', '#{sent += 1}')") until ending }
    3.times do |number|
      server.signal(:USR1)
      restarted(server, times: number + 1)
    end
    ending = true
    publisher.join

    assert_operator sent, :>, 20
    clients.each { |client| assert((1..sent).to_a == client.receive_all(sent).map(&:to_i).sort) }
  end

  # Blocks are objects of the old code: the new code subscribes again, and gets what was published meanwhile.
  def test_blocks_of_the_new_code_get_messages_from_before
    server = versioned_clients(<<~'RUBY')
      VERSION = File.read("version").strip

      class Counter
        def self.on_takeover(client, state)
          sleep 0.005 until File.exist?("go")
          new.tap { |handler| handler.on_open(client) }
        end

        def on_open(client) = client.subscribe("news") { |_, text| client.write("#{text} in #{VERSION}") }
        def on_handover(_client) = ""
        def on_message(client, _) = client.write("here")
      end
    RUBY
    client = web_socket(server)
    assert_equal "here", asked(client, "hi")
    server.write("version", "2")
    server.signal(:USR1)
    restarted(server)
    3.times { |number| assert_equal "true", requested(server, "Fairlead.publish('news', '#{number}')") }
    server.write("go", "")

    assert_equal ["0 in 2", "1 in 2", "2 in 2"], client.receive_all(3)
  end

  def test_a_subscription_that_the_new_code_does_not_make_ends
    server = versioned_clients(COUNTER.sub("client&.subscribe(\"news\")", ""), workers: 1)
    client = web_socket(server)
    asked(client, "hi")
    server.signal(:USR1)
    restarted(server)
    assert_equal "hi 2 1 ", asked(client, "hi")
    requested(server, "Fairlead.publish('news', 'nobody')")

    assert_equal "hi 3 1 ", asked(client, "hi")
    wait_until("no subscription") { requested(server, "Fairlead.stats[:engines].sum { |engine| engine[:subscriptions] }") == "0" }
  end

  def test_the_env_is_one_that_rack_accepts
    server = versioned_clients(<<~'RUBY')
      VERSION = File.read("version").strip

      class Counter
        def self.on_takeover(client, _state)
          RequestLint.new(->(env) { @env = env }).call(client.env)
          new
        end

        class << self
          attr_reader :env
        end

        def on_handover(_client) = ""

        def on_message(client, key)
          client.write((self.class.env ? self.class.env[key] : client.env[key]).inspect)
        end
      end
    RUBY
    client = web_socket(server, "/path/x%20y?a=b", headers: { "cookie" => "c=d" })
    keys = %w[PATH_INFO QUERY_STRING SCRIPT_NAME REQUEST_METHOD REQUEST_URI HTTP_COOKIE HTTP_HOST SERVER_NAME SERVER_PORT REMOTE_ADDR
              SERVER_PROTOCOL SERVER_SOFTWARE rack.url_scheme rack.version HTTP_UPGRADE HTTP_SEC_WEBSOCKET_KEY]
    before = keys.to_h { |key| [key, asked(client, key)] }
    server.signal(:USR1)
    restarted(server)

    assert_equal(before, keys.to_h { |key| [key, asked(client, key)] })
    offers = %w[rack.upgrade rack.upgrade? rack.hijack? rack.response_finished rack.hijack]
    assert_equal(%w[nil nil false [] nil], offers.map { |key| asked(client, key) })
    assert_empty server.stderr
  end

  # The old code; the new code; the close code and reason, and the lines in the log.
  REFUSALS = {
    "without_on_handover" => ["def on_message(client, _) = client.write('here')", "", [1012, ""], nil],
    "that_returns_nil" => ["def on_handover(_) = nil", "", [1012, ""], nil],
    "that_raises" => ["def on_handover(_) = raise('no state')", "", [1012, ""], /no state/],
    "that_the_new_code_does_not_know" => ["def on_handover(_) = 'x'", "Object.send(:remove_const, :Counter)", nil,
                                          /clients of Counter cannot be taken over: there is no such class/],
    "without_on_takeover" => ["def on_handover(_) = 'x'", "", nil, /Counter\.on_takeover is missing/],
    "that_the_new_code_refuses" => ["def on_handover(_) = 'x'", "def Counter.on_takeover(*) = nil", nil, nil],
    "whose_takeover_raises" => ["def on_handover(_) = 'x'", "def Counter.on_takeover(*) = raise('not me')", nil, /not me/],
    "whose_takeover_ends_the_thread" => ["def on_handover(_) = 'x'", "def Counter.on_takeover(*) = Thread.exit", nil, /was killed; another one/],
    "with_too_much_state" => ["def on_handover(_) = 'x' * (1 << 20)", "", [1012, ""],
                              /a client of Counter cannot move to another process: its state and its request have/]
  }.freeze

  REFUSED = [1012, "the new version of the application cannot take over the client"].freeze

  REFUSALS.each do |name, (old, new, close, line)|
    define_method("test_a_client_#{name}_is_told_to_connect_again") do
      server = versioned_clients("class Counter; #{old}; end\nif File.read('version').strip == '2'\n#{new}\nend")
      clients = Array.new(2) { web_socket(server) }
      clients.each { |client| client.ping("there?") && client.receive_pong }
      server.write("version", "2")
      server.signal(:USR1)

      clients.each { |client| assert_equal close || REFUSED, client.receive_close }
      restarted(server)
      line ? assert_match(line, server.stderr) : assert_empty(server.stderr)
      assert_equal "plain", get(server).body
    end
  end

  # A class that is the handler itself, and one that is anonymous.
  def test_a_class_as_handler
    server = versioned_clients(<<~'RUBY', handler: "env['PATH_INFO'] == '/nameless' ? Class.new(Counter) : Counter")
      VERSION = File.read("version").strip

      class Counter
        class << self
          def on_handover(_client) = name
          def on_takeover(_client, _state) = self
          def on_message(client, text) = client.write("#{text} #{name} #{VERSION}")
        end
      end
    RUBY
    client = web_socket(server)
    nameless = web_socket(server, "/nameless")
    assert_equal "hi Counter 1", asked(client, "hi")
    server.write("version", "2")
    server.signal(:USR1)

    assert_equal 1012, nameless.receive_close.first
    restarted(server)
    assert_equal "hi Counter 2", asked(client, "hi")
    assert_match(/clients with a handler of an anonymous class cannot move/, server.stderr)
  end

  def test_another_handler_and_a_deferred_block
    server = versioned_clients(<<~'RUBY')
      class Counter
        def on_message(client, text)
          client.defer { Notes.add("deferred #{text}") }
          client.handler = Other.new
        end

        def on_handover(_client) = raise("the former handler")
      end

      class Other
        def self.on_takeover(_client, state) = new.tap { Notes.add("took #{state}") }
        def on_handover(_client) = "other"
        def on_message(client, text) = client.write("other #{text}")
      end
    RUBY
    client = web_socket(server)
    client.send_text("x")
    wait_for_notes(server, 1)
    server.signal(:USR1)
    restarted(server)

    assert_equal "other y", asked(client, "y")
    assert_equal ["deferred x", "took other"], notes(server)
  end

  def test_event_streams_go_on_with_a_handler_and_without_one
    server = versioned_clients(<<~'RUBY')
      class Counter
        def self.on_takeover(client, state)
          client.subscribe("news")
          client.write("from #{state}")
          new
        end

        def on_open(client)
          client.subscribe("news")
          client.write("hello")
        end

        def on_handover(client) = client.env["PATH_INFO"] == "/alone" || Process.pid.to_s
      end
    RUBY
    stream = event_stream(server)
    alone = event_stream(server, "/alone")
    assert_equal %w[hello hello], ([stream, alone].map { |one| one.receive.data })
    2.times do |number|
      before = server.worker_pids
      server.signal(:USR1)
      restarted(server, times: number + 1)
      requested(server, "Fairlead.publish('news', 'news #{number}')")

      assert_includes before.map { |pid| "from #{pid}" }, stream.receive.data
      assert_equal ["news #{number}"] * 2, ([stream, alone].map { |one| one.receive.data })
    end
  end

  private

  # Starts a server with a new Counter for each WebSocket and event stream.
  def versioned_clients(code = COUNTER, workers: 2, handler: "Counter.new")
    app = unlinted(<<~RUBY, setup: code)
      unless env["rack.upgrade?"]
        code = env["HTTP_X_CODE"]
        next [200, { "content-type" => "text/plain" }, [code ? eval(code).inspect : "plain"]]
      end
      env["rack.upgrade"] = #{handler}
      [200, {}, []]
    RUBY
    versioned("-w", workers, "-t", 2, "--drain-spread", "0.2", app: app)
  end

  def asked(client, text)
    client.send_text(text)
    client.receive.last
  end
end
