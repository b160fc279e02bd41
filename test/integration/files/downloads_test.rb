# frozen_string_literal: true

require "test_helper"
require "support/file_serving"
require "support/processes"

# Large files, slow clients and busy threads: a download delays no other client, needs no Ruby thread, and leaves nothing
# behind.
class DownloadsTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::Processes

  NINE_MEGABYTES = 9_000_000

  # The first one waits until the file "go" exists, and computes.
  BUSY = <<~RUBY
    run lambda { |env|
      if env["PATH_INFO"] == "/compute"
        warn("busy")
        1_000_000.times { nil } until File.exist?("go")
      end
      [200, { "x-from" => "app" }, ["ok"]]
    }
  RUBY

  # More seconds than clients need that read one after the other.
  PATIENT = 600

  def test_short_requests_go_on_while_ten_clients_do_not_take_their_downloads
    server = serving("-t", "1", "--write-timeout", PATIENT)
    slow = Array.new(10) { narrow_client(server).request("GET", "/large.bin") }
    slow.each { |client| assert client.readable?(20) }
    client = connect(server)

    100.times do
      assert_file "small", client.get("/small.txt")
      assert_from_app client.get("/missing")
    end
    slow.each { |one| assert_file noise(NINE_MEGABYTES), one.answer }
  end

  def test_short_requests_go_on_while_ten_clients_download
    server = serving("-t", "1")
    readers = Array.new(10) { connect(server) }.map { |client| Thread.new { client.get("/large.bin").body } }
    client = connect(server)
    answered = 0

    while readers.any?(&:alive?) || answered < 100
      assert_file "small", client.get("/small.txt")
      assert_from_app client.get("/missing")
      answered += 1
    end
    readers.each { |reader| assert_equal noise(NINE_MEGABYTES), reader.value }
  end

  def test_a_download_shares_with_another_one_that_began_earlier
    server = serving
    first = narrow_client(server).request("GET", "/large.bin")
    assert first.readable?(20)

    assert_file noise(NINE_MEGABYTES), get(server, "/large.bin")
    assert_file noise(NINE_MEGABYTES), first.answer
  end

  def test_files_are_served_while_the_only_thread_computes
    while_busy do |server|
      client = connect(server)
      etag = client.get("/small.txt")["etag"]

      50.times { assert_file "small", client.get("/small.txt") }
      assert_file noise(NINE_MEGABYTES), client.get("/large.bin")
      assert_equal 304, client.get("/small.txt", "if-none-match" => etag).status
      assert_equal [206, "ma"], client.get("/small.txt", "range" => "bytes=1-2").then { |answer| [answer.status, answer.body] }
      assert_equal 301, client.get("/sub").status
      assert_file "index", client.get("/sub/")
      server.write("public/new.txt", "new")
      assert_file "new", get(server, "/new.txt")
    end
  end

  def test_files_are_served_in_every_worker_while_every_thread_computes
    while_busy("-w", "2", times: 2) do |server|
      clients = Array.new(10) { connect(server) }
      clients.each { |client| assert_file "small", client.get("/small.txt") }
    end
  end

  def test_clients_that_vanish_in_the_middle_of_a_download_leave_nothing_open
    leaves_nothing_open do |server|
      10.times do |number|
        client = narrow_client(server).request("GET", "/large.bin", number.even? ? {} : { "range" => "bytes=0-4000000,4000002-8000000" })
        assert client.readable?(20)
        number < 5 ? client.reset : client.close
      end
    end
  end

  def test_clients_that_vanish_before_they_read_anything_leave_nothing_open
    leaves_nothing_open do |server|
      20.times { connect(server).write("GET /large.bin HTTP/1.1\r\nhost: a\r\n\r\n" * 5).reset }
      20.times { connect(server).write("GET /small.txt HTTP/1.1\r\nhost: a\r\n\r\n" * 50).reset }
    end
  end

  def test_requests_that_are_answered_leave_nothing_open
    leaves_nothing_open do |server|
      client = connect(server)
      20.times do
        client.get("/large.bin", "range" => "bytes=0-99999")
        client.get("/sub")
        client.get("/missing")
        client.request("HEAD", "/large.bin").answer(to: "HEAD")
        client.get("/large.bin", "if-none-match" => "*")
      end
      client.close
    end
  end

  def test_a_client_that_does_not_take_its_download_is_let_go_in_time
    server = serving("--write-timeout", "1")
    client = narrow_client(server).request("GET", "/large.bin")
    assert client.readable?(20)

    wait_until("the file to be closed") { !sending?(server) }
    assert_raises(Fairlead::Test::HttpClient::CutOff) { client.answer }
  end

  def test_a_client_that_takes_its_download_below_the_minimum_rate_is_let_go
    server = serving("--write-timeout", "1", "--write-min-rate", "1000000")
    seconds = seconds_of do
      client = narrow_client(server).request("GET", "/large.bin")
      assert client.readable?(20)
      wait_until("the file to be closed") { !sending?(server) || !client.socket.read_nonblock(500, exception: false) }
    end

    assert_operator seconds, :>=, 0.5
    assert_file "small", get(server, "/small.txt")
  end

  def test_a_download_that_nobody_takes_does_not_keep_the_server_from_ending
    server = serving("--shutdown-timeout", "1")
    client = narrow_client(server).request("GET", "/large.bin")
    assert client.readable?(20)

    server.stop
    assert_raises(Fairlead::Test::HttpClient::CutOff) { client.answer }
  end

  def test_a_download_that_has_begun_is_finished_when_the_server_ends
    server = serving
    client = narrow_client(server).request("GET", "/large.bin")
    assert client.readable?(20)
    server.signal(:TERM)

    assert_file noise(NINE_MEGABYTES), client.answer
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  def serving(*arguments, app: APP)
    serve_public({ "large.bin" => noise(NINE_MEGABYTES), "small.txt" => "small", "sub/index.html" => "index" }, *arguments, app: app)
  end

  # Yields a server with a request in every thread; lets these finish afterwards.
  def while_busy(*arguments, times: 1)
    server = serving("-t", "1", *arguments, app: BUSY)
    clients = Array.new(times) { connect(server).request("GET", "/compute") }
    wait_until("#{times} busy threads") { server.stderr.scan("busy").size == times }
    yield server

    clients.each { |client| refute client.readable?, "the thread was no longer busy" }
    server.write("go", "")
    clients.each { |client| assert_equal 200, client.answer.status }
  end

  # Yields a server; in the end it has no more open descriptors than at first, and serves.
  def leaves_nothing_open
    server = serving
    Array.new(3) { connect(server) }.each do |client|
      %w[/small.txt /large.bin /missing].each { |path| client.get(path) }
      client.close
    end
    before = wait_until("a quiet server") { connections(server).zero? && descriptors(server.serving_pid) }
    yield server

    assert_file "small", get(server, "/small.txt")
    wait_for_closed_descriptors(server.serving_pid, before)
  end

  def sending?(server) = open_files(server.serving_pid).any? { |path| path.end_with?("large.bin") }

  # Number of connected sockets.
  def connections(server)
    connected = File.readlines("/proc/net/tcp").map(&:split).reject { |fields| fields[3] == "0A" }.map { |fields| "socket:[#{fields[9]}]" }
    (open_files(server.serving_pid) & connected).size
  end
end
