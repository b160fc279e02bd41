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

  private

  def serve_few(*options)
    serve(PID, "-w", 2, "--max-connections", PLACES, *options, files: { "config/fairlead.rb" => Fairlead::Test::BoardFile::SCRIPT })
  end

  # Connects as many clients as there are places. Returns the clients of each worker.
  def fill(server)
    clients = Hash.new { |all, pid| all[pid] = [] }
    (2 * PLACES).times { assert_equal 200, answer_of(connect(server), clients) }
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

  # All clients of a worker close their connections.
  def leave(server, pid, clients)
    clients.delete(pid).each(&:close)
    wait_until("the worker to notice") do
      workers = Fairlead::Test::BoardFile.new(server)["workers"]
      totals = %w[requests connections].map { |name| workers.sum { |worker| worker.fetch(name) } }
      totals == [@served, PLACES]
    end
  end
end
