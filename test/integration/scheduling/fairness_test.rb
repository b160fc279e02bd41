# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# Turns are per request, not per client: a client that keeps its connection and sends requests as fast as it can gets no more
# than its share. The test compares counts of one run, never times.
class FairnessTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  QUICK = "run ->(env) { [200, {}, ['.']] }"
  WAITING = "run ->(env) { sleep 0.005; [200, {}, ['.']] }"

  def test_ten_keep_alive_clients_of_one_thread_get_equal_shares
    counts = shares(serve(WAITING, "-t", 1), clients: 10, seconds: 1)

    assert_operator counts.min, :>, 5
    assert_operator counts.max.fdiv(counts.min), :<, 1.5
  end

  def test_more_clients_than_threads_get_equal_shares
    counts = shares(serve(WAITING, "-t", 5), clients: 16, seconds: 1)

    assert_operator counts.min, :>, 5
    assert_operator counts.max.fdiv(counts.min), :<, 1.6
  end

  def test_clients_of_a_quick_app_get_comparable_shares
    counts = shares(serve(QUICK, "-t", "1:5"), clients: 10, seconds: 1)

    assert_operator counts.max.fdiv(counts.min), :<, 2
  end

  def test_new_connections_are_served_beside_keep_alive_clients
    server = serve(WAITING, "-t", 2)
    fresh = 0
    counts = shares(server, clients: 8, seconds: 1) do |running|
      fresh += 1 while running.call && get(server)
    end

    assert_operator fresh, :>, counts.min / 2
  end

  private

  # Number of responses to each of so many clients, which all send their next request at once. Yields, to a client of another
  # kind, a function that returns true while time is left.
  def shares(server, clients:, seconds:)
    ending = monotonic + seconds
    running = -> { monotonic < ending }
    other = Thread.new { yield running } if block_given?
    counts = Array.new(clients, 0)
    sockets = Array.new(clients) { connect(server).request.socket }
    while running.call
      ready, = IO.select(sockets, nil, nil, 1)
      # In random order: otherwise the first client of every round would also be the first one ready for the next.
      (ready || []).shuffle.each { |socket| counts[sockets.index(socket)] += 1 if again(socket) }
    end
    other&.join
    counts
  end

  # Reads a response, which comes as one piece because it is small, and sends the next request.
  def again(socket)
    assert_match(/\r\n\r\n\.\z/, socket.readpartial(1000))
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
  end
end
