# frozen_string_literal: true

require "test_helper"
require "support/fake_server"
require "support/http_client"

# The control server by its sockets: what it reads, within which limits, and how it ends.
class ControlServerTest < Minitest::Test
  include Fairlead::Test::Waiting
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Folders

  Control = Fairlead::Control

  def setup
    @log = Fairlead::Test::CollectedLog.new
  end

  def teardown
    @clients&.each(&:close)
    @server&.close
  end

  # Serves with +app+, which gets the requests.
  def serve(address = "tcp://127.0.0.1:0", **options, &app)
    app ||= ->(request) { Control::Response.text(200, "#{request.path} #{request.query}") }
    @server = Control::Server.new(address, app, log: @log, **options).start
  end

  # Serves in another process, behind what the block does there.
  def serve_apart
    reader, writer = IO.pipe
    pid = fork do
      yield
      serve
      writer.write(@server.url)
      writer.close
      sleep
    end
    writer.close
    @url = reader.read
    pid
  ensure
    reader&.close
  end

  def client = adopt(TCPSocket.new("127.0.0.1", Integer((@url || @server.url)[/\d+\z/], 10)))

  def test_one_request_of_a_connection_is_answered
    serve
    client = self.client
    answer = client.get("/a?b=c")

    assert_equal [200, "/a b=c", "close", "text/plain"], [answer.status, answer.body, answer["connection"], answer["content-type"]]
    assert_predicate client, :closed?
  end

  def test_an_error_that_is_none_of_the_usual_ones_ends_no_thread
    [NoMemoryError, LoadError].each do |kind|
      serve(prompt: ->(request) { raise kind, "no luck" if request.path == "/now" }) do |request|
        raise kind, "no luck" if request.path == "/later"

        Control::Response.text(200, "fine")
      end

      assert_equal [500, 500, 200], %w[/now /later /].map { |path| client.get(path).status }
      @server.close
    end
  end

  def test_a_body_is_thrown_away
    serve
    answer = client.request("POST", "/x", { "content-length" => 300_000 }, body: "x" * 300_000).answer

    assert_equal 200, answer.status
  end

  def test_it_listens_on_a_unix_socket_and_removes_its_file
    in_folder do |folder|
      serve("unix://#{folder}/control.sock")

      assert_equal "unix://#{folder}/control.sock", @server.url
      assert_equal "/x ", adopt(Socket.unix("#{folder}/control.sock")).get("/x").body
      @server.close
      refute_path_exists "control.sock"
    end
  end

  def test_what_is_not_http_is_refused
    serve

    assert_equal 400, client.write("hello\r\n\r\n").answer.status
  end

  def test_a_large_head_is_refused
    serve

    assert_equal 431, client.write("GET / HTTP/1.1\r\nx: #{"y" * 9000}").answer.status
  end

  def test_a_slow_head_is_refused
    serve(seconds: 0.05) { flunk }

    assert_equal 408, client.write("GET / HTTP/1.1\r\n").answer.status
  end

  def test_a_head_may_come_in_parts
    serve
    client = self.client
    "GET /a HTTP/1.1\r\nhost: a\r\n\r\n".each_char { |char| client.write(char) }

    assert_equal 200, client.answer.status
  end

  def test_silent_connections_delay_nobody
    serve
    silent = Array.new(Control::Connections::LIMIT / 2) { client }

    assert_equal 200, client.get.status
    assert(silent.none?(&:readable?))
  end

  def test_a_connection_beyond_the_limit_takes_the_place_of_the_one_that_has_been_silent_for_longest
    serve
    silent = Array.new(Control::Connections::LIMIT - 1) { client }

    assert_equal 200, client.get.status # so all of them have been accepted
    silent.first.write("GET")

    assert_equal 200, client.get.status # by the next turn, the three bytes have been read
    silent << client

    assert_equal 200, client.get.status
    assert_predicate silent[1], :closed?
    refute_predicate silent.last, :readable?
  end

  def test_clients_that_do_not_read_delay_nobody
    large = "x" * 8_000_000
    serve { |request| Control::Response.text(200, request.path == "/large" ? large : "small") }
    lazy = Array.new(Control::CommandThreads::LIMIT + 4) { client.request("GET", "/large") }

    assert_equal "small", client.get.body
    assert_equal large.bytesize, lazy.first.answer.body.bytesize
  end

  def test_a_probe_is_answered_while_all_commands_are_busy
    go = Thread::Queue.new
    prompt = ->(request) { Control::Response.text(200, "here") if request.path == "/live" }
    serve(prompt: prompt) do
      go.pop
      Control::Response.ok
    end
    commands = Array.new(Control::CommandThreads::LIMIT + Control::CommandThreads::WAITING) { client.request }

    assert_equal "here", client.get("/live").body
    assert_equal 503, client.get.status
    go.close
    assert_equal([200], commands.map { |client| client.answer.status }.uniq)
  end

  def test_silent_connections_that_use_up_the_descriptors_delay_nobody
    pid = serve_apart { Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").size + 4) }
    silent = Array.new(12) { client }

    assert_equal 200, client.get.status
    assert_predicate silent.first, :closed?
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_forked_process_gives_open_connections_away
    serve
    client = self.client.write("GET /")
    wait_until { @server.instance_variable_get(:@connections).readers.any? }
    pid = fork do
      @server.forget
      sleep
    end
    client.write(" HTTP/1.1\r\n\r\n")

    assert_equal 200, client.answer.status
    assert_predicate client, :closed?
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_command_that_raises_is_logged_and_the_server_goes_on
    serve { |request| request.path == "/" ? raise("no luck") : Control::Response.ok }

    assert_equal 500, client.get.status
    wait_until { @log.text.include?("no luck") }
    assert_equal 200, client.get("/x").status
  end

  def test_more_connections_than_it_takes_at_once_are_served_in_turn
    go = Thread::Queue.new
    busy = Thread::Queue.new
    serve do
      busy << true
      go.pop
      Control::Response.ok
    end
    clients = Array.new(Control::CommandThreads::LIMIT + 4) { client.request }
    wait_until { busy.size == Control::CommandThreads::LIMIT }
    clients.size.times { go << true }

    assert_equal([200] * clients.size, clients.map { |client| client.answer.status })
  end

  def test_at_the_end_no_thread_and_no_descriptor_is_left
    before = [Thread.list.size, Dir.children("/proc/self/fd").size]
    serve
    client.get
    @clients.each(&:close)
    @server.close

    wait_until { before == [Thread.list.size, Dir.children("/proc/self/fd").size] }
  end

  def test_a_response_that_is_on_its_way_is_sent_before_the_end
    asked = Thread::Queue.new
    go = Thread::Queue.new
    serve do
      asked << true
      go.pop
      Control::Response.ok
    end
    client = self.client.request
    asked.pop
    ending = Thread.new { @server.close }
    go << true

    assert_equal 200, client.answer.status
    ending.join
  end

  def test_a_forked_process_gives_the_sockets_away
    serve
    client = self.client
    pid = fork do
      @server.forget
      sleep
    end
    client.close
    @server.close

    assert_raises(Errno::ECONNREFUSED) { self.client }
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
