# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# `priority_paths`: a health check does not wait for the requests before it, and clients cannot use it to bypass the queue.
class PriorityPathsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  # Sleeps for the seconds in the query; responds with the number of the request among all that the process has begun, and
  # with the number of others for the same path that ran at that time.
  APP = <<~RUBY
    LOCK = Mutex.new
    COUNTS = Hash.new(0)
    run lambda { |env|
      path = env["PATH_INFO"]
      place, others = LOCK.synchronize { [COUNTS[:all] += 1, (COUNTS[path] += 1) - 1] }
      sleep env["QUERY_STRING"].to_f
      LOCK.synchronize { COUNTS[path] -= 1 }
      [200, {}, ["\#{place} \#{others}"]]
    }
  RUBY

  def test_a_health_check_is_next
    server = serve(APP, "-t", 1, "--priority-paths", "/up")
    queue = fill_queue(server, 20)
    check = connect(server).request("GET", "/up?0")

    assert_operator place(check.answer), :<=, 8
    assert_equal 21, queue.map { |client| place(client.answer) }.max
  end

  def test_only_the_exact_path_has_priority
    server = serve(APP, "-t", 1, "--priority-paths", "/up")
    queue = fill_queue(server, 10)
    others = %w[/up/ /UP /up2 /%75p /].map { |path| connect(server).request("GET", "#{path}?0") }
    queue.each(&:answer)

    assert_equal (11..15).to_a, others.map { |client| place(client.answer) }.sort
  end

  def test_one_at_a_time_overtakes_others
    server = serve(APP, "-t", 3, "--priority-paths", "/ping,/up")
    queue = fill_queue(server, 40)
    checks = Array.new(6) { connect(server).request("GET", "/up?0.05") }.map(&:answer)

    assert_equal [0], checks.map { |answer| Integer(answer.body.split[1]) }.uniq
    assert_operator checks.map { |answer| place(answer) }.max, :<, 40
    assert_equal 46, queue.map { |client| place(client.answer) }.max
  end

  def test_whoever_sends_nothing_else_keeps_nobody_out
    assert_others_have_every_second_turn serve(APP, "-t", 1, "--priority-paths", "/up")
  end

  def test_nor_those_who_wait_in_the_waiting_room
    assert_others_have_every_second_turn serve(APP, "-w", 2, "-t", 1, "--priority-paths", "/up")
  end

  def test_a_health_check_does_not_queue_in_the_waiting_room
    server = serve(APP, "-w", 2, "-t", 1, "--priority-paths", "/up")
    queue = fill_queue(server, 40)
    queue.first(4).each(&:answer)
    check = connect(server).request("GET", "/up?0").answer
    before = queue.drop(4).count(&:readable?)

    assert_equal 200, check.status
    assert_operator before, :<=, 10
  end

  def test_it_goes_with_turns_by_client
    server = serve(APP, "-t", 1, "--priority-paths", "/up", "--fair-by", "ip")
    fill_queue(server, 20)
    check = connect(server).request("GET", "/up?0")

    assert_operator place(check.answer), :<=, 8
  end

  private

  def assert_others_have_every_second_turn(server)
    checks = Array.new(20) { connect(server).request("GET", "/up?0.005") }
    others = Array.new(8) { connect(server).request("GET", "/?0.005") }
    counts = answers_while_all_ask_again(checks + others, 1.0)

    assert_operator counts.values_at(*others).sum, :>=, (counts.values.sum * 0.4).floor, counts.values.inspect
    assert_operator counts.values_at(*checks).sum, :>, 20
  end

  # Returns that many clients that wait for a response, each of which takes 50 ms; the server has read all of their requests.
  def fill_queue(server, count)
    clients = Array.new(count) { connect(server).request("GET", "/?0.05") }
    wait_until("the first response") { clients.any?(&:readable?) }
    clients
  end

  def place(answer) = Integer(answer.body.split.first)

  # Number of responses to each client in so many seconds, while all send their next request at once.
  def answers_while_all_ask_again(clients, seconds)
    counts = clients.to_h { |client| [client, 0] }
    by_socket = clients.to_h { |client| [client.socket, client] }
    finish = monotonic + seconds
    while monotonic < finish
      ready, = IO.select(by_socket.keys, nil, nil, 1)
      (ready || []).shuffle.each do |socket|
        client = by_socket[socket]
        target = clients.index(client) < 20 ? "/up?0.005" : "/?0.005"
        counts[client] += 1 if client.answer
        client.request("GET", target)
      end
    end
    counts
  end
end
