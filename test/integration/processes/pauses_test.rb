# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/http_client"
require "support/processes"
require "support/web_socket"

# Pauses that stop all processes of a server, but not the clock, like `docker pause`, a frozen virtual machine or SIGSTOP.
# They must not cause a timeout.
class PausesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  WHO = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"

  PATIENT = <<~'RUBY'
    run lambda { |_env|
      File.write("inside", "")
      sleep 0.01 until File.exist?("go")
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  ECHO = <<~'RUBY'
    ECHO = Class.new { def on_message(client, message) = client.write(message) }
    run lambda { |env|
      env["rack.upgrade"] = ECHO.new if env["rack.upgrade?"]
      [200, {}, ["#{env["rack.input"].read.bytesize} bytes"]]
    }
  RUBY

  TIMEOUT = 2

  ORDERS = {
    "the_supervisor_first" => ->(supervisor, others) { [supervisor, *others] },
    "the_workers_first" => ->(supervisor, others) { [*others, supervisor] },
    "only_the_supervisor" => ->(supervisor, _) { [supervisor] }
  }.freeze

  ORDERS.each do |name, order|
    define_method(:"test_no_worker_is_replaced_after_a_pause_that_ends_with_#{name}") do
      server = serve(WHO, "-w", 2, "--worker-timeout", TIMEOUT)
      workers = server.worker_pids
      pause(order.call(server.pid, others(server)), TIMEOUT + 1)
      assert_turns(server)

      assert_empty server.stderr
      assert_equal workers, server.worker_pids & workers
    end
  end

  def test_idle_web_sockets_stay_open_over_a_pause
    server = serve(ECHO, "--ping-interval", 1)
    sockets = Array.new(5) { Fairlead::Test::WebSocket.connect("127.0.0.1", server.port) }
    pause([server.pid, *server.serving_pids], 4)
    sockets.each do |socket|
      socket.receive_ping
      socket.send_text("still there?")
    end

    assert_equal ["still there?"], sockets.map { |socket| socket.receive.last }.uniq
    assert_empty server.stderr
  end

  # The supervisor may run before the workers.
  def test_workers_with_a_short_time_have_a_moment_after_each_pause
    server = serve(WHO, "-w", 2, "--worker-timeout", 1)
    workers = server.worker_pids
    6.times do |count|
      pause(order_of(server), 1.3)
      continued = monotonic
      wait_until("a moment") { monotonic > continued + 0.6 + (count * 0.1) }
    end
    assert_turns(server)

    assert_empty server.stderr
    assert_equal workers, server.worker_pids & workers
  end

  def test_a_worker_that_does_not_come_back_from_a_pause_is_replaced
    server = serve(WHO, "-w", 2, "--worker-timeout", TIMEOUT)
    stays, = server.worker_pids
    Process.kill(:STOP, stays)
    pause(order_of(server) - [stays], TIMEOUT + 1)

    server.wait_for_output(/\(pid #{stays}\) has shown no sign of life for #{TIMEOUT} s/)
    wait_until("the replacement") { !server.worker_pids.include?(stays) && server.worker_pids.size == 2 }
    assert_equal 1, server.stderr.scan("no sign of life").size
  end

  def test_a_worker_that_boots_during_a_pause_is_not_late
    server = launch(WHO, "-w", 1, "--worker-boot-timeout", TIMEOUT,
                    files: { "config/fairlead.rb" => "before_worker_boot { sleep 0.01 until File.exist?('go') }" })
    server.wait_for_workers(1)
    pause(order_of(server), TIMEOUT + 1)
    assert_turns(server)
    server.write("go", "")

    server.wait_for_output(/ready/)
    assert_empty server.stderr
  end

  [1, 0].each do |workers|
    define_method(:"test_a_request_that_is_finished_after_a_pause_is_not_late_for_the_end_with_#{workers}_workers") do
      server = serve(PATIENT, "-w", workers, "--shutdown-timeout", TIMEOUT)
      answer = request_in(server)
      server.signal(:TERM)
      server.wait_for_output(/TERM: finishing/)
      pause(order_of(server), TIMEOUT + 1 + (workers * Fairlead::Worker::EXIT_GRACE))
      server.write("go", "")

      assert_equal "200", answer.value
      assert_equal 0, server.wait_exit.exitstatus
      assert_empty server.stderr
    end
  end

  def test_a_pause_is_no_idleness
    servers = [0, 1].map { |workers| serve(WHO, "-w", workers, "--idle-timeout", TIMEOUT) }
    pause(servers.flat_map { |server| order_of(server) }, TIMEOUT + 1)

    servers.each do |server|
      assert_match(/\A\d+\z/, Net::HTTP.get(URI(server.url)))
      refute_match(/no request for/, server.stdout)
    end
  end

  def test_what_clients_send_during_a_pause_is_in_time
    server = serve(ECHO, "-w", 1, *%w[--keep-alive-timeout --head-timeout --body-timeout].flat_map { |flag| [flag, TIMEOUT] }, "--ping-interval", 1)
    idle, head, body, fresh = Array.new(4) { connect(server) }
    socket = Fairlead::Test::WebSocket.connect("127.0.0.1", server.port)
    head.write("GET / HTTP/1.1\r\nho")
    body.write("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 1000\r\n\r\n")
    idle.get
    pause(order_of(server), TIMEOUT * 2) do
      [idle, fresh].each(&:request)
      head.write("st: test\r\n\r\n")
      body.write("x" * 1000)
      socket.send_text("hello")
    end

    assert_equal ["0 bytes"] * 3, [idle, fresh, head].map { |client| client.answer.body }
    assert_equal "1000 bytes", body.answer.body
    assert_equal [:text, "hello"], socket.receive
  end

  # Otherwise one client could prevent the timeouts of all others forever.
  def test_a_pause_excuses_each_client_once_however_it_goes_on
    server = serve(WHO, "--head-timeout", TIMEOUT)
    slow, silent = Array.new(2) { connect(server).write("GET / HTTP/1.1\r\n") }
    over = monotonic + TIMEOUT - 0.2
    wait_until("nearly the timeout") { monotonic > over }
    pause([server.pid], 0.8)
    trickle = Thread.new { loop { slow.write("x") && sleep(0.2) } }
    trickle.report_on_exception = false

    [slow, silent].each { |client| assert_equal 408, client.answer.status }
  ensure
    trickle&.kill
  end

  private

  # All processes but the first.
  def others(server) = Fairlead::Test::Processes.group(server.pid) - [server.pid]

  def order_of(server) = [server.pid, *others(server)]

  # Stops the processes for +seconds+, calls the block in that time, and continues them in order.
  def pause(pids, seconds)
    pids.each { |pid| Process.kill(:STOP, pid) }
    wait_until("all processes to stop") { pids.all? { |pid| Fairlead::Test::Processes.halted?(pid) } }
    yield if block_given?
    over = monotonic + seconds
    wait_until("the end of the pause", seconds: seconds + 5) { monotonic > over }
    pids.each { |pid| Process.kill(:CONT, pid) }
  end

  # Waits for several turns of the supervisor's loop. In each it checks its workers.
  def assert_turns(server)
    1.upto(3) do |count|
      server.signal(:TTIN)
      wait_until("turn #{count}") { server.stdout.scan("changing to").size == count }
    end
  end

  def request_in(server)
    thread = Thread.new { Net::HTTP.get_response(URI(server.url)).code }
    wait_until("the request") { File.exist?(server.path("inside")) }
    thread
  end
end
