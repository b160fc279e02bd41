# frozen_string_literal: true

require "test_helper"
require "net/http"
require "stringio"
require "timeout"

# A server inside another program, which is this process.
class ServerTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  HELLO = ->(_) { [200, { "content-type" => "text/plain" }, ["hello"]] }

  def teardown
    @servers&.each { |server| server.stop(0) }
  end

  def test_it_serves_until_it_is_stopped_and_then_leaves_nothing_behind
    Timeout.timeout(60) { nil } # starts its own thread, which Net::HTTP would start
    threads = Thread.list
    server = start(HELLO)

    assert_equal "hello", get(server)
    assert_equal true, server.stop
    assert_empty Thread.list - threads
    assert_raises(Errno::ECONNREFUSED) { get(server) }
  end

  def test_run_serves_until_another_thread_stops_it
    yielded = Thread::Queue.new
    server = make(HELLO)
    thread = Thread.new { server.run { |running| yielded << running } }

    assert_same server, yielded.pop
    assert_equal "hello", get(server)
    server.stop
    assert_same server, thread.value
  end

  def test_stopping_waits_for_requests_that_have_arrived
    inside = Thread::Queue.new
    go_on = Thread::Queue.new
    server = start(->(_) { inside << true && [200, {}, [go_on.pop]] })
    answer = Thread.new { get(server) }
    inside.pop
    stopping = Thread.new { server.stop(10) }
    wait_until("the end of accepting") { stopping.status == "sleep" }
    go_on << "finished"

    assert_equal [true, "finished"], [stopping.value, answer.value]
  end

  def test_stopping_cuts_off_what_takes_too_long
    inside = Thread::Queue.new
    server = start(->(_) { inside << true && sleep }, log: (lines = []))
    client = Thread.new { Net::HTTP.get_response(URI("http://127.0.0.1:#{server.port}/")).code }
    inside.pop

    assert_equal false, server.stop(0.1)
    assert_equal "503", client.value
    assert_match(/ForcedShutdown/, lines.join)
  end

  def test_it_can_be_stopped_twice
    server = start(HELLO)
    server.stop
    server.stop
  end

  def test_two_servers_live_in_one_process
    servers = %w[one two].map { |name| start(->(_) { [200, {}, [name]] }) }

    assert_equal(%w[one two], servers.map { |server| get(server) })
  end

  def test_it_says_where_it_listens
    in_folder do |folder|
      server = start(HELLO, bind: ["tcp://127.0.0.1:0", "unix://#{folder}/app.sock"])

      assert_equal ["http://127.0.0.1:#{server.port}", "unix:#{folder}/app.sock"], server.addresses
      assert_equal [server.port], server.ports
      server.stop
      refute_path_exists "app.sock"
    end
  end

  def test_an_address_in_use_is_an_error_and_leaves_nothing_open
    server = start(HELLO)
    in_folder do
      second = make(HELLO, bind: ["unix://app.sock", "tcp://127.0.0.1:#{server.port}"])

      assert_raises(Fairlead::BindError) { second.start }
      refute_path_exists "app.sock"
    end
  end

  def test_options_that_make_no_sense_are_told
    error = assert_raises(Fairlead::ConfigurationError) { Fairlead::Server.new(HELLO, threads: "5:1", wrokers: 1) }

    assert_equal %i[wrokers min_threads], error.problems.map(&:option)
  end

  def test_environment_variables_do_not_count
    ENV["PORT"] = "1"

    refute_equal 1, start(HELLO).port
  ensure
    ENV.delete("PORT")
  end

  def test_an_exception_of_the_application_is_logged_and_answered
    errors = StringIO.new
    server = start(->(_) { raise "boo" }, log: Fairlead::EventLog.new(quiet: true, errors: errors), environment: "production")
    response = Net::HTTP.get_response(URI("http://127.0.0.1:#{server.port}/path?secret"))

    assert_equal "500", response.code
    refute_includes response.body, "boo"
    assert_match(%r{\Aerror in the application: GET /path: .*boo \(RuntimeError\)}, errors.string)
  end

  def test_threads_start_when_they_are_needed_and_have_names
    inside = Thread::Queue.new
    go_on = Thread::Queue.new
    server = start(->(_) { (inside << Thread.current.name) && [200, {}, [go_on.pop]] }, threads: [0, 3])
    clients = Array.new(3) { Thread.new { get(server) } }
    names = Array.new(3) { inside.pop }
    3.times { go_on << "x" }
    clients.each(&:join)

    assert_equal ["fairlead 1", "fairlead 2", "fairlead 3"], names.sort
  end

  def test_a_thread_that_the_application_kills_is_replaced
    server = start(->(env) { env["PATH_INFO"] == "/die" ? Thread.current.kill : [200, {}, ["alive"]] }, threads: 1)
    assert_raises(EOFError, Errno::ECONNRESET) { get(server, "/die") }

    assert_equal "alive", get(server)
  end

  def test_what_the_engine_counts_can_be_read
    server = start(HELLO)
    get(server)

    assert_equal 1, server.stats[:requests]
  end

  private

  def make(app, bind: "tcp://127.0.0.1:0", **options)
    Fairlead::Server.new(app, bind: bind, **options)
  end

  def start(app, **options)
    server = make(app, **options)
    (@servers ||= []) << server
    server.start
  end

  def get(server, path = "/")
    http = Net::HTTP.new("127.0.0.1", server.port)
    http.max_retries = 0
    http.read_timeout = 10
    http.start { http.get(path).body }
  end
end
