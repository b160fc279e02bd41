# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"
require "support/pausing"

# Workers that have reached `max_connections`, beside workers that have not.
class FullWorkersTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Pausing

  PID = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"
  PLACES = 4
  FILES = 100
  ROUNDS = 3

  def test_no_client_is_refused_while_a_worker_has_a_place
    server = serve_few
    clients = fill(server)
    ROUNDS.times do
      leave(server, clients.keys.last, clients)
      answers = Array.new(PLACES) { answer_of(connect(server), clients) }

      assert_equal [200] * PLACES, answers
    end
    assert_equal 503, connect(server).answer.status
  end

  def test_all_clients_that_no_worker_has_a_place_for_are_refused
    server = serve_few
    fill(server)
    clients = Array.new(10) { connect(server) }

    assert_equal [503] * 10, clients.map { |client| client.answer.status }
  end

  def test_a_client_is_refused_if_the_worker_with_places_hangs
    server = serve_few("--worker-timeout", 3600)
    clients = fill(server)
    stopped = clients.keys.first
    leave(server, stopped, clients)
    pause_processes([stopped])

    assert_equal 503, connect(server).answer.status
    resume_processes([stopped])
    wait_until("the worker to go on") { answer_of(connect(server), clients) == 200 }
    assert_equal [200] * (PLACES - 1), Array.new(PLACES - 1) { answer_of(connect(server), clients) }
  end

  def test_a_client_is_refused_if_the_worker_with_places_hangs_while_full_workers_are_busy
    server = serve_few("--worker-timeout", 3600, workers: 3)
    clients = fill(server, 3 * PLACES)
    stopped = clients.keys.first
    leave(server, stopped, clients)
    pause_processes([stopped])
    refused = connect(server).request("GET", "/")
    wait_until("its response") { clients.each_value { |all| all.first.get } && refused.readable? }

    assert_equal 503, refused.answer.status
  end

  # The worker with one place sees both connections at once.
  def test_a_worker_that_takes_its_last_client_leaves_the_other_listeners
    server = serve_few("-b", "unix://socket", "--worker-timeout", 3600)
    clients = fill(server)
    ROUNDS.times do
      first, other = clients.keys
      leave(server, other, clients)
      free_place(server, first, clients)
      pause_processes([first, other])
      both = [connect(server), adopt(UNIXSocket.new(server.path("socket")))]
      resume_processes([first, other])

      assert_equal([200, 200], both.map { |client| answer_of(client, clients) })
      (2 * PLACES - clients.values.sum(&:size)).times { assert_equal 200, answer_of(connect(server), clients) }
    end
  end

  def test_a_worker_without_descriptors_is_full
    server = serve_few("--max-connections", 1000, setup: "Process.setrlimit(:NOFILE, #{FILES}, #{FILES})")
    places = Fairlead::Test::BoardFile.new(server)["workers"].sum { |worker| worker.fetch("limit_connections") }
    clients = fill(server, places)
    left = leave(server, clients.keys.first, clients)

    assert_equal [200] * left, Array.new(left) { answer_of(connect(server), clients) }
    assert_equal 503, connect(server).answer.status
    assert_match(/--max-connections: a process can have only \d+, because its limit of open files \(ulimit -Hn\) is #{FILES}$/, server.stderr)
  end

  # The application of one worker takes all descriptors.
  def test_a_worker_whose_application_has_all_descriptors_leaves_clients_to_the_others
    server = serve(<<~RUBY, "-w", 2, files: { "config/fairlead.rb" => "Process.setrlimit(:NOFILE, 200, 200)" })
      run lambda { |env|
        (FILES = []).then { |files| loop { files << File.open(IO::NULL) } } rescue Errno::EMFILE if env["PATH_INFO"] == "/all"
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    connect(server).get("/all")
    one_by_one = Array.new(50) { connect(server).tap(&:get).tap(&:close) }
    at_once = Array.new(20) { connect(server).request("GET", "/") }

    assert_equal [200], at_once.map { |client| client.answer.status }.uniq
    assert_equal 50, one_by_one.size
    refute_match(/refused/, server.stderr)
  end

  private

  def serve_few(*options, workers: 2, setup: "")
    file = "#{setup}\n#{Fairlead::Test::BoardFile::SCRIPT}"
    serve(PID, "-w", workers, "--max-connections", PLACES, *options, files: { "config/fairlead.rb" => file })
  end

  # Connects as many clients as there are places. Returns the clients of each worker.
  def fill(server, places = 2 * PLACES)
    clients = Hash.new { |all, pid| all[pid] = [] }
    places.times { assert_equal 200, answer_of(connect(server), clients) }
    clients
  end

  # Returns the status. Adds a client that is served to the clients of its worker.
  def answer_of(client, clients)
    answer = client.get
    if answer.status == 200
      @served = @served.to_i + 1
      clients[answer.body.to_i] << client
    end
    answer.status
  end

  # All clients of a worker close their connections. Returns their number.
  def leave(server, pid, clients)
    left = clients.delete(pid).each(&:close).size
    wait_for_board(server, clients)
    left
  end

  # One client of a worker closes its connection.
  def free_place(server, pid, clients)
    clients[pid].pop.close
    wait_for_board(server, clients)
  end

  def wait_for_board(server, clients)
    wait_until("the worker to notice") do
      workers = Fairlead::Test::BoardFile.new(server)["workers"]
      totals = %w[requests connections].map { |name| workers.sum { |worker| worker.fetch(name) } }
      totals == [@served, clients.values.sum(&:size)]
    end
  end
end
