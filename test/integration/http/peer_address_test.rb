# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"

# The server records the peer address at the accept: a client that is gone when its request runs keeps its address.
# Allow-lists rely on it.
class PeerAddressTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  ADDRESS = "127.0.0.2"
  RESETS = 200

  # Notes the client's address and the worker of each request.
  APP = <<~RUBY
    SEEN = File.open(File.expand_path("seen", __dir__), File::WRONLY | File::APPEND | File::CREAT)
    run lambda { |env|
      SEEN.syswrite("\#{env["REMOTE_ADDR"].inspect} \#{Process.pid}\\n") unless env["PATH_INFO"] == "/ready"
      sleep env["QUERY_STRING"].to_f
      [200, {}, ["ok"]]
    }
  RUBY

  def test_a_client_that_resets_right_after_its_request
    server = serve(APP, "--access-log", "access.log")
    RESETS.times { ask_and_reset(server, "GET / HTTP/1.1\r\nhost: a\r\n\r\n") }

    assert_equal [ADDRESS], logged(server, RESETS).uniq
    assert_equal [[ADDRESS.inspect, server.serving_pid.to_s]], seen(server, 1).uniq
  end

  def test_workers_and_those_who_wait_in_the_waiting_room
    server = serve(APP, "-w", 2, "-t", 1, "--access-log", "access.log")
    RESETS.times { ask_and_reset(server, "GET /?0.002 HTTP/1.1\r\nhost: a\r\n\r\n") }

    # Requests that wait for longer are dropped, because their clients have left.
    assert_equal [ADDRESS], logged(server, RESETS).uniq
    found = seen(server, 2)

    assert_equal [ADDRESS.inspect], found.map(&:first).uniq
    assert_equal server.worker_pids.map(&:to_s), found.map(&:last).uniq.sort
  end

  # Each request is in a busy worker, and the other worker takes it. Its client has left.
  def test_guests_of_the_waiting_room
    server = serve(APP, "-w", 2, "-t", 1, "-C", "board.rb", "--access-log", "access.log", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    board = Fairlead::Test::BoardFile.new(server)
    busy = Array.new(2) { connect(server).request("GET", "/ready?3") }
    wait_until("two busy workers") { board["workers"].map { |worker| worker["busy_threads"] } == [1, 1] }
    moved = board["moved"]
    8.times { ask_and_reset(server, "GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    wait_until("all requests in the waiting room") { board["moved"] == moved + 8 }

    assert_equal [200, 200], busy.map { |client| client.answer.status }
    lines = lines(server, "access.log", 10)

    assert_equal [[ADDRESS, "499"]] * 8, lines.map { |line| line.split.values_at(0, 8) }.select { |_, status| status == "499" }
  end

  def test_a_refused_request_is_told_of_with_the_address
    server = serve(APP, "--access-log", "access.log")
    20.times { ask_and_reset(server, "NONSENSE\r\n\r\n") }

    assert_equal [ADDRESS], logged(server, 20).uniq
    wait_until("the log lines about refusals") { server.stderr.scan("refused 400").size == 20 }
    assert_equal 20, server.stderr.scan(/refused 400 \(.*\) from #{Regexp.escape(ADDRESS)}:\d+$/).size
  end

  private

  # Sends everything from ADDRESS, then resets.
  def ask_and_reset(server, bytes)
    adopt(TCPSocket.new("127.0.0.1", server.port, ADDRESS)).write(bytes).reset
  end

  # Pairs of an address and a process id that the app has got.
  def seen(server, count)
    lines(server, "seen", count).map(&:split)
  end

  # Client addresses in the access log.
  def logged(server, count)
    lines(server, "access.log", count).map { |line| line.split.first }
  end

  def lines(server, file, count)
    wait_until("#{count} lines in #{file}") do
      found = File.exist?(server.path(file)) ? File.readlines(server.path(file), chomp: true) : []
      found.size >= count && found
    end
  end
end
