# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# Slow clients: late requests get 408, silent connections are closed, and other clients are not affected.
class SlowClientTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  parallelize_me!

  ECHO = "run ->(env) { [200, {}, [env['rack.input'].read]] }"

  def test_a_head_that_trickles_in_gets_408_counted_from_its_first_byte
    server = serve(ECHO, "--head-timeout", 1)
    client = connect(server)
    elapsed = seconds_of { trickle(client, "GET / HTTP/1.1\r\nhost: test\r\n#{"x-filler: 1\r\n" * 100}") }

    assert_equal 408, client.answer.status
    assert_includes 0.9..2.5, elapsed
    assert_equal "", client.rest
  end

  def test_a_silent_connection_is_closed_without_an_answer
    server = serve(ECHO, "--head-timeout", 1)
    client = connect(server)
    rest = nil
    elapsed = seconds_of { rest = client.rest }

    assert_equal "", rest
    assert_includes 0.9..2.5, elapsed
  end

  def test_a_body_below_the_minimum_rate_gets_408_after_its_grace
    server = serve(ECHO, "--body-timeout", 1, "--body-min-rate", 1000)
    client = connect(server).write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100000\r\n\r\n")
    elapsed = seconds_of { trickle(client, "x" * 100_000) }

    assert_equal 408, client.answer.status
    assert_includes 0.9..2.8, elapsed
  end

  def test_a_body_that_keeps_the_minimum_rate_may_take_longer_than_the_grace
    server = serve(ECHO, "--body-timeout", "0.5", "--body-min-rate", 100)
    body = "0123456789" * 30
    client = connect(server).write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 300\r\n\r\n")
    elapsed = seconds_of { trickle(client, body, step: 20, pause: 0.1) }

    assert_equal body, client.answer.body
    assert_operator elapsed, :>, 1
  end

  def test_a_body_that_stops_after_a_quick_beginning_is_answered_the_same
    server = serve(ECHO, "--body-timeout", 1)
    client = connect(server).write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 9000000\r\n\r\n#{"x" * 2_000_000}")
    seconds = seconds_of { assert_equal 408, client.answer.status }

    assert_includes 0.9..3.0, seconds
  end

  def test_a_body_may_come_at_any_rate_when_the_minimum_is_zero
    server = serve(ECHO, "--body-timeout", "0.3", "--body-min-rate", 0)
    client = connect(server).write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\n")
    trickle(client, "0123456789", pause: 0.1)

    assert_equal "0123456789", client.answer.body
  end

  def test_a_body_that_stops_after_expect_continue_is_answered_the_same
    server = serve(ECHO, "--body-timeout", 1)
    client = connect(server)
    client.write("POST / HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")

    assert_equal 100, client.answer.status
    assert_equal 408, client.answer.status
  end

  def test_an_idle_connection_is_closed_after_the_keep_alive_time
    server = serve(ECHO, "--keep-alive-timeout", 1)
    client = connect(server)

    assert_equal 200, client.get.status
    elapsed = seconds_of { assert_equal "", client.rest }

    assert_includes 0.9..2.5, elapsed
  end

  def test_each_request_starts_the_keep_alive_time_anew
    server = serve(ECHO, "--keep-alive-timeout", 1)
    client = connect(server)
    4.times do
      assert_equal 200, client.get.status
      refute client.readable?(0.5)
    end

    assert_equal "", client.rest
  end

  def test_forty_slow_heads_do_not_hold_up_a_server_with_one_thread
    server = serve(ECHO, "-t", 1, "--head-timeout", 5)
    slow = Array.new(40) { connect(server).write("GET / HTTP/1.1\r\nhost:") }

    assert_equal(200, get(server).status)
    assert_equal([200], slow.map { |client| client.write(" test\r\n\r\n").answer.status }.uniq)
  end

  private

  # Sends +bytes+ in small steps until a response comes.
  def trickle(client, bytes, step: 1, pause: 0.05)
    (0...bytes.bytesize).step(step) do |at|
      client.write(bytes.byteslice(at, step))
      break if client.readable?(pause)
    end
    assert client.readable?(10)
  end
end
