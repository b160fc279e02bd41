# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# Requests that wait for a thread and are not run: they have waited too long, the queue is full, or their client has left. The rules
# themselves are tested in crates/engine/tests/overload.rs.
class OverloadTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  parallelize_me!

  # /hold keeps its thread until the file exists, /gone until its client has left.
  APP = <<~RUBY
    run lambda { |env|
      File.write("calls", "\#{env["PATH_INFO"]}\n", mode: "a")
      sleep 0.02 until File.exist?("go") if env["PATH_INFO"] == "/hold"
      if env["PATH_INFO"] == "/gone"
        sleep 0.01 until env["fairlead.client_gone?"].call
        File.write("left", "")
      end
      [200, {}, ["served"]]
    }
  RUBY

  HELD = %w[-t 1:1].freeze

  def calls(server)
    File.exist?(server.path("calls")) ? File.read(server.path("calls")) : ""
  end

  def hold(server)
    connect(server).request("GET", "/hold").tap { wait_until("the thread is held") { calls(server).include?("/hold") } }
  end

  # A client that waits. The server may hear of the ends of other clients later.
  def connect_and_wait(server)
    client = nil
    wait_until("a client is not refused") do
      client = connect(server).request("GET", "/there")
      !client.readable?(0.1)
    end
    client
  end

  def test_a_request_that_no_thread_takes_in_time_gets_503_and_the_application_never_sees_it
    server = serve(APP, *HELD, "--queue-timeout", "0.2", "--access-log", "-")
    held = hold(server)
    client = connect(server).request("GET", "/late")
    answer = client.answer

    assert_equal [503, "1"], [answer.status, answer["retry-after"]]
    File.write(server.path("go"), "")
    assert_equal "served", held.answer.body
    assert_equal "served", client.request("GET", "/again").answer.body
    assert_equal %w[/hold /again], calls(server).split
    server.wait_for_output(/refused 503 \(no thread was free within queue_timeout\)/)
    server.wait_for_output(%r{"GET /late HTTP/1.1" 503})
  end

  def test_requests_of_two_workers_get_503_in_time_while_all_threads_hang
    server = serve(APP, "-w", 2, *HELD, "--queue-timeout", "0.3")
    held = Array.new(2) { connect(server).request("GET", "/hold") }
    wait_until("both threads are held") { calls(server).scan("/hold").size == 2 }
    late = Array.new(30) { connect(server).request("GET", "/late") }

    assert_equal [503] * 30, late.map { |client| client.answer.status }
    File.write(server.path("go"), "")
    assert_equal ["served"] * 2, held.map { |client| client.answer.body }
    refute_includes calls(server), "/late"
  end

  def test_a_full_queue_refuses_at_once
    server = serve(APP, *HELD, "--queue-limit", 2)
    hold(server)
    waiting = Array.new(2) { connect(server).request("GET", "/waits") }
    # Pipelined requests of one connection come one after the other.
    statuses = Array.new(3) { connect(server).request("GET", "/full").answer.status }

    assert_equal [503] * 3, statuses
    File.write(server.path("go"), "")
    assert_equal ["served"] * 2, waiting.map { |client| client.answer.body }
  end

  def test_clients_that_have_reset_their_connections_leave_the_waiting_room_to_others
    linux_only "nothing reports the end of a socket in the waiting room"
    server = serve(APP, "-w", 2, *HELD, "--queue-limit", 50)
    held = Array.new(2) { connect(server).request("GET", "/hold") }
    wait_until("both threads are held") { calls(server).scan("/hold").size == 2 }
    crowd = Array.new(100) { connect(server).request("GET", "/left") }
    wait_until("the queue is full") { crowd.any? { |client| client.readable?(0.01) } }
    crowd.each { |client| client.socket.setsockopt(Socket::Option.linger(true, 0)) }.each(&:close)
    there = Array.new(10) { connect_and_wait(server) }
    File.write(server.path("go"), "")
    assert_equal ["served"] * 12, [*held, *there].map { |client| client.answer.body }
    assert_equal [*["/hold"] * 2, *["/there"] * 10], calls(server).split
  end

  def test_a_request_whose_client_has_left_is_logged_with_499_and_not_run
    server = serve(APP, *HELD, "--access-log", "-")
    held = hold(server)
    connect(server).request("GET", "/left").close
    server.wait_for_output(%r{"GET /left HTTP/1.1" 499 })
    File.write(server.path("go"), "")

    assert_equal "served", held.answer.body
    assert_equal %w[/hold], calls(server).split
  end

  def test_requests_in_the_waiting_room_whose_clients_have_left_are_not_run
    server = serve(APP, "-w", 2, *HELD)
    held = Array.new(2) { connect(server).request("GET", "/hold") }
    wait_until("both threads are held") { calls(server).scan("/hold").size == 2 }
    Array.new(50) { connect(server).request("GET", "/left") }.each(&:close)
    there = connect(server).request("GET", "/there")
    wait_until("they have waited for long") { there.readable?(0.05) || true }
    File.write(server.path("go"), "")

    assert_equal ["served"] * 3, [*held, there].map { |client| client.answer.body }
    assert_equal %w[/hold /hold /there], calls(server).split
  end

  def test_the_application_can_ask_if_the_client_has_left
    server = serve(APP)
    connect(server).request("GET", "/gone").tap { wait_until("it runs") { calls(server).include?("/gone") } }.close

    wait_until("the application knows") { File.exist?(server.path("left")) }
  end

  def test_a_client_that_only_closes_its_half_is_not_gone
    server = serve(<<~RUBY)
      run ->(env) { sleep 0.2; [200, {}, [Array.new(3) { sleep 0.05; env["fairlead.client_gone?"].call }.inspect]] }
    RUBY
    client = connect(server).write("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
    client.half_close

    assert_match(%r{\AHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 .*\[false, false, false\]\z}m, client.rest)
  end

  def test_the_question_has_no_answer_outside_of_a_request
    server = serve(<<~RUBY)
      run lambda { |env|
        question = env["fairlead.client_gone?"]
        [200, {}, [[question.call, Thread.new { question.call }.value].inspect]]
      }
    RUBY

    assert_equal "[false, nil]", connect(server).request("GET", "/").answer.body
  end
end
