# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/board_file"
require "support/http_client"
require "support/processes"

# One queue for all workers: a worker with a free thread runs the requests that wait in a busy one, with their bodies and in
# order of arrival, and none is lost when a worker dies.
class WaitingRoomTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = <<~RUBY
    require "digest/md5"
    require "fiddle"
    FILES = []

    # Uses up the descriptors of this process.
    def exhaust
      Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").size + 10) if FILES.empty?
      loop { FILES << File.open(File::NULL) }
    rescue Errno::EMFILE
      true
    end

    def relieve = FILES.each(&:close).clear

    def exhaust_for_a_while
      finish = Time.now + 1.5
      Thread.new do
        exhaust && sleep(0.01) while Time.now < finish
        relieve
      end
    end

    # Once there is a file "go", another thread writes a file, and holds the GVL for so long.
    def hang(seconds)
      function = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      Thread.new { sleep 0.01 until File.exist?("go"); File.write("hangs", ""); function.call(seconds) }
    end

    run lambda { |env|
      hang(10) if env["PATH_INFO"] == "/hang"
      exhaust if env["PATH_INFO"] == "/exhaust"
      relieve if env["PATH_INFO"] == "/relieve"
      exhaust_for_a_while if env["PATH_INFO"] == "/exhaust-for-a-while"
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

  # Otherwise the client of a worker that dies would wait for the other processes.
  def test_a_connection_that_has_moved_is_open_in_one_process_only
    server = serve(APP, "-w", 2, "-t", 1)
    clients_in_one_worker(server, 6).first.each { |client| client.request("GET", "/?0.1") }.each(&:answer)
    pids = [server.pid, server.spawner_pid, *server.worker_pids]
    shares = -> { pids.map { |pid| clients(pid, server.port) } }

    wait_until("each socket in one process") { shares.call.flatten.tally.values.uniq == [1] }
    assert_equal [true, true], shares.call.last(2).map(&:any?), "some connections have migrated"
  end

  def test_bodies_in_memory_and_in_a_file_travel_along
    server = serve(APP, "-w", 2, "-t", 1)
    [1000, 20_000, 60_000, 2_000_000].each do |size|
      bodies = Array.new(6) { |index| Random.new(index).bytes(size) }
      clients, = clients_in_one_worker(server, 6)
      clients.zip(bodies) { |client, body| client.request("POST", "/?0.1", body: body) }
      answers = clients.map { |client| client.answer.body.split }

      assert_equal(bodies.map { |body| Digest::MD5.hexdigest(body) }, answers.map(&:last))
      assert_equal 2, answers.map(&:first).uniq.size, "bodies of #{size} bytes"
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
    wait_until("all requests in the waiting room") { stats(server)["waiting"] == 6 }
    Process.kill(:KILL, victim)

    assert_equal 6, waiting.count { |client| client.answer.status == 200 }
    assert_equal [[], [other.to_s]], busy.map { |client| client.rest.scan(%r{\d+(?= / )}) }.sort_by(&:size)
    assert_operator stats(server)["moved"], :>=, 6
    wait_until("an empty waiting room") { stats(server)["waiting"].zero? }
  end

  def test_a_worker_without_descriptors_leaves_those_who_wait_to_others
    server = serve(APP, "-w", 2, "-t", 1)
    clients, home = clients_in_one_worker(server, 6)
    other = client_elsewhere(server, home)
    other.get("/exhaust")
    answers = clients.each { |client| client.request("GET", "/?0.05") }.map { |client| client.answer.body.split }

    assert_equal [home.to_s], answers.map(&:first).uniq
    assert_logged("left requests in the waiting room to other workers: too few descriptors", server)
    other.get("/relieve")

    assert_equal 2, wait_until("requests in both workers") { (pids = pids_of_sleepers(clients)).size > 1 && pids }.size
  end

  # The system wakes one worker for each request: a worker that leaves it to another one must wake that one.
  def test_those_who_are_left_to_others_wait_for_nobody_else
    server = serve(APP, "-w", 3, "-t", 1)
    (busy, *clients), home = clients_in_one_worker(server, 9)
    client_elsewhere(server, home).get("/exhaust")
    busy.request("GET", "/?20")
    pids = clients.map { |client| pid_of(client.get("/?0.15")) }

    assert_equal 1, (pids - [home]).uniq.size, pids.inspect
    refute busy.readable?, "the requests' own worker became free too early"
  end

  def test_a_worker_that_is_woken_and_does_not_come_has_another_one_woken
    server = serve(APP, "-w", 3, "-t", 1)
    (busy, *clients), home = clients_in_one_worker(server, 7)
    hanging = pid_of(client_elsewhere(server, home).get("/hang"))
    server.write("go", "")
    wait_until("the worker to hang") { File.exist?(server.path("hangs")) }
    busy.request("GET", "/?20")
    pids = clients.map { |client| pid_of(client.get("/?0.1")) }

    assert_empty pids & [home, hanging]
  end

  # Only its own clock wakes the worker: it gets neither a request nor a byte, only a connection ends.
  def test_a_worker_that_has_descriptors_again_takes_those_who_wait
    server = serve(APP, "-w", 2, "-t", 1, "--keep-alive-timeout", 1)
    clients, home = clients_in_one_worker(server, 3)
    client_elsewhere(server, home).get("/exhaust-for-a-while")
    clients.each_with_index { |client, index| client.request("GET", "/?#{index.zero? ? 15 : 0}") }

    refute_includes clients.last(2).map { |client| pid_of(client.answer) }, home
    refute clients.first.readable?, "the requests' own worker became free too early"
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
    wait_until("requests in both workers") { both_work?(server) }
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
    2.times { connect(server).request("GET", "/?3") }
    wait_until("two busy workers") { stats(server)["workers"].map { |worker| worker["busy_threads"] } == [1, 1] }
    waiting = Array.new(6) { connect(server).request("GET", "/?0.01") }
    wait_until("all requests in the waiting room") { stats(server)["waiting"] == 6 }
    Process.kill(:KILL, victim)
    server.signal(:TERM)

    assert_equal 6, waiting.count { |client| client.answer.status == 200 }
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  # Sends requests until the block is false; returns the number of responses.
  def ask_again_and_again(server)
    count = 0
    client = connect(server)
    while yield
      count += 1
      client = connect(server) if client.get("/?0.02")["connection"] == "close"
    end
    count
  end

  # Returns a client of another worker.
  def client_elsewhere(server, home)
    wait_until("a connection to another worker") do
      client = connect(server)
      pid_of(client.get("/?0")) != home && client
    end
  end

  # Workers that respond to these concurrent requests.
  def pids_of_sleepers(clients)
    clients.each { |client| client.request("GET", "/?0.05") }.map { |client| pid_of(client.answer) }.uniq
  end

  def both_work?(server)
    Array.new(4) { connect(server).request("GET", "/?0.05") }.map { |client| pid_of(client.answer).tap { client.close } }.uniq.size == 2
  end

  def pid_of(answer) = Integer(answer.body.split.first, 10)

  # That many idle keep-alive clients of one worker, and its pid.
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
