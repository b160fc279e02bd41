# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/board_file"
require "support/http_client"

# One queue for all workers: what waits in a busy worker is run by one with a free thread, whole, in order of arrival, and
# nothing is lost when a worker dies.
class WaitingRoomTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    require "digest/md5"
    run lambda { |env|
      input = env["rack.input"].read
      sleep env["QUERY_STRING"].to_f
      [200, {}, ["\#{Process.pid} \#{env["PATH_INFO"]} \#{env["REMOTE_ADDR"]} \#{Digest::MD5.hexdigest(input)}"]]
    }
  RUBY

  BOARD = Fairlead::Test::BoardFile::SCRIPT

  def test_connections_that_sit_in_one_worker_are_served_by_both
    server = serve(APP, "-w", 2, "-t", 1)
    clients, = clients_in_one_worker(server, 8)
    pids = clients.each { |client| client.request("GET", "/?0.2") }.map { |client| pid_of(client.answer) }

    assert_equal server.worker_pids, pids.uniq.sort
    assert_includes 3..5, pids.count(pids.first)
  end

  def test_without_the_waiting_room_they_stay_where_they_are
    server = serve(APP, "-w", 2, "-t", 1, "--no-waiting-room")
    clients, home = clients_in_one_worker(server, 4)
    clients.each { |client| client.request("GET", "/?0.1") }

    assert_equal [home], clients.map { |client| pid_of(client.answer) }.uniq
  end

  def test_a_connection_that_has_moved_is_kept_alive_and_moves_again
    server = serve(APP, "-w", 2, "-t", 1)
    clients, = clients_in_one_worker(server, 4)
    rounds = Array.new(5) do
      clients.each_with_index { |client, index| client.request("GET", "/#{index}?0.03") }.map { |client| client.answer.body.split }
    end

    rounds.each { |answers| assert_equal((0..3).map { |index| ["/#{index}", "127.0.0.1"] }, answers.map { |one| one[1, 2] }) }
    assert_equal 2, rounds.flatten(1).map(&:first).uniq.size
  end

  def test_bodies_in_memory_and_in_a_file_travel_along
    server = serve(APP, "-w", 2, "-t", 1)
    [1000, 20_000, 60_000, 2_000_000].each do |size|
      bodies = Array.new(6) { |index| Random.new(index).bytes(size) }
      clients, = clients_in_one_worker(server, 6)
      clients.zip(bodies) { |client, body| client.request("POST", "/?0.1", body: body) }
      answers = clients.map { |client| client.answer.body.split }

      assert_equal(bodies.map { |body| Digest::MD5.hexdigest(body) }, answers.map(&:last))
      assert_equal 2, answers.map(&:first).uniq.size, "bodies of #{size} bytes" unless size == 60_000 # too large to move
      clients.each(&:close)
    end
  end

  def test_requests_that_are_pipelined_behind_one_that_moves_move_along
    server = serve(APP, "-w", 2, "-t", 1)
    clients, = clients_in_one_worker(server, 4)
    clients.each { |client| client.write("GET /?0.05 HTTP/1.1\r\nhost: a\r\n\r\n" * 3) }

    assert_equal 12, clients.sum { |client| Array.new(3) { client.answer }.count { |answer| answer.status == 200 } }
  end

  def test_those_who_wait_survive_the_worker_they_came_from
    server = serve(APP, "-w", 2, "-t", 1, "-C", "board.rb", files: { "board.rb" => BOARD })
    victim, other = server.worker_pids
    busy = Array.new(2) { connect(server).request("GET", "/?3", { "connection" => "close" }) }
    wait_until("two busy workers") { stats(server)["workers"].map { |worker| worker["busy_threads"] } == [1, 1] }
    waiting = Array.new(6) { connect(server).request("GET", "/?0.01") }
    wait_until("all of them in the waiting room") { stats(server)["waiting"] == 6 }
    Process.kill(:KILL, victim)

    assert_equal 6, waiting.count { |client| client.answer.status == 200 }
    assert_equal [[], [other.to_s]], busy.map { |client| client.rest.scan(%r{\d+(?= / )}) }.sort_by(&:size)
    assert_operator stats(server)["moved"], :>=, 6
    wait_until("an empty room") { stats(server)["waiting"].zero? }
  end

  def test_none_is_lost_under_a_load_that_both_workers_cannot_carry
    server = serve(APP, "-w", 2, "-t", 2)
    clients = Array.new(40) { connect(server) }
    answers = Array.new(5) { clients.each { |client| client.request("GET", "/?0.01") }.map { |client| client.answer.status } }

    assert_equal [200] * 200, answers.flatten
  end

  def test_a_worker_that_is_to_leave_leaves_however_many_wait
    server = serve(APP, "-w", 2, "-t", 1)
    loaded = true
    load = Array.new(20) { Thread.new { ask_again_and_again(server) { loaded } } }
    wait_until("both workers at work") { both_work?(server) }
    server.signal(:TTOU)
    server.wait_for_workers(1, seconds: 3)
    loaded = false

    assert_operator load.sum(&:value), :>, 20
  ensure
    loaded = false
  end

  def test_those_who_wait_are_served_at_the_end_by_whoever_is_left
    server = serve(APP, "-w", 2, "-t", 1, "-C", "board.rb", files: { "board.rb" => BOARD })
    victim = server.worker_pids.first
    2.times { connect(server).request("GET", "/?1") }
    wait_until("two busy workers") { stats(server)["workers"].map { |worker| worker["busy_threads"] } == [1, 1] }
    waiting = Array.new(6) { connect(server).request("GET", "/?0.01") }
    wait_until("all of them in the waiting room") { stats(server)["waiting"] == 6 }
    Process.kill(:KILL, victim)
    server.signal(:TERM)

    assert_equal 6, waiting.count { |client| client.answer.status == 200 }
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  # Asks until the block says no; returns the number of answers.
  def ask_again_and_again(server)
    count = 0
    client = connect(server)
    while yield
      count += 1
      client = connect(server) if client.get("/?0.02")["connection"] == "close"
    end
    count
  end

  def both_work?(server)
    Array.new(4) { connect(server).request("GET", "/?0.05") }.map { |client| pid_of(client.answer).tap { client.close } }.uniq.size == 2
  end

  def pid_of(answer) = Integer(answer.body.split.first, 10)

  # That many idle keep-alive clients, all in one worker, and its pid.
  def clients_in_one_worker(server, count)
    by_pid = Hash.new { |hash, pid| hash[pid] = [] }
    200.times do
      client = connect(server)
      pid = pid_of(client.get("/?0"))
      by_pid[pid] << client
      return [by_pid[pid], pid] if by_pid[pid].size == count
    end
    flunk "no worker got #{count} connections"
  end

  def stats(server) = Fairlead::Test::BoardFile.new(server)
end
