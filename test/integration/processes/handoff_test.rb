# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"
require "support/restarts"

# A worker that ends while others continue migrates its connections: another process responds on the same socket, after every
# kind of end and at every point of the client's next request.
class HandoffTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  # Responds with its process, the client's address and the request body. "/until?FILE" waits for that file.
  APP = <<~'RUBY'
    run lambda { |env|
      File.write("inside-#{env["PATH_INFO"].delete("/")}", Process.pid.to_s) unless env["PATH_INFO"] == "/"
      sleep 0.005 until env["PATH_INFO"] == "/" || File.exist?(env["QUERY_STRING"])
      [200, {}, ["#{Process.pid} #{env["REMOTE_ADDR"]} #{env["rack.input"].read}"]]
    }
  RUBY

  # Name of an action => its signal, and the log line at its end.
  ENDS = {
    "a phased restart" => [:USR1, /phased restart: done/],
    "a hot restart" => [:USR2, /hot restart: done/],
    "a refork" => [:URG, /refork: done/],
    "one worker less" => [:TTOU, nil]
  }.freeze

  ENDS.each do |name, (signal, message)|
    define_method("test_connections_go_on_through_#{name.tr(" ", "_")}") do
      server = serve(APP, "-w", 2, "-t", 2)
      clients = clients_of_all(server, 12)
      fresh = Array.new(4) { connect(server) }
      before = server.worker_pids
      server.signal(signal)
      message ? server.wait_for_output(message, seconds: 30) : server.wait_for_workers(1)

      answers = (clients + fresh).map(&:get)
      assert_equal [nil], answers.map { |answer| answer["connection"] }.uniq
      assert_empty answers.map { |answer| pid_of(answer) } & (before - server.worker_pids)
      assert_empty server.stderr
    end
  end

  def test_clients_that_go_on_asking_notice_nothing
    server = serve(APP, "-w", 2, "-t", 2)
    answers = asking(server, 6) do
      { USR1: "phased restart", USR2: "hot restart", URG: "refork" }.each do |signal, name|
        server.signal(signal)
        restarted(server, name)
      end
    end

    assert_operator answers.map(&:size).min, :>, 10
    assert_equal [[200, nil]], answers.flatten(1).uniq
    assert_empty server.stderr
  end

  def test_connections_of_a_unix_socket_go_on
    server = serve(APP, "-w", 2, bind: "unix://app.sock")
    clients = Array.new(8) { adopt(UNIXSocket.new(server.path("app.sock"))).tap(&:get) }
    server.signal(:USR1)
    restarted(server)

    assert_equal [200], clients.map { |client| client.get.status }.uniq
  end

  def test_the_addresses_may_have_another_order_afterwards
    app = "run ->(env) { [200, {}, [[Process.pid, env['SERVER_PORT'], env['REMOTE_ADDR']].join(' ')]] }"
    addresses = ["tcp://127.0.0.1:0", "unix://app.sock"]
    server = serve(app, "-w", 2, bind: nil, files: { "config/fairlead.rb" => addresses.map { |address| "bind '#{address}'\n" }.join })
    clients = Array.new(4) { connect(server) } + Array.new(4) { adopt(UNIXSocket.new(server.path("app.sock"))) }
    before = clients.map { |client| client.get.body.split.drop(1) }
    server.write("config/fairlead.rb", addresses.reverse.map { |address| "bind '#{address}'\n" }.join)
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal(before, clients.map { |client| client.get.body.split.drop(1) })
    assert_empty server.stderr
  end

  def test_half_a_head_goes_with_its_connection
    each_of_a_retired_worker do |client|
      client.write("GET / HTTP/1.1\r\nhost: a\r\nx-half: ")
      -> { client.write("other\r\n\r\n") }
    end
  end

  def test_a_long_head_goes_with_its_connection
    each_of_a_retired_worker("--head-max-bytes", 80_000) do |client|
      client.write("GET / HTTP/1.1\r\nhost: a\r\nx-half: #{"x" * 50_000}")
      -> { client.write("other\r\n\r\n") }
    end
  end

  def test_the_next_request_of_a_pipeline_is_run_by_another_worker
    server, client, home = retirable
    client.request("GET", "/until?go")
    3.times { client.request("GET", "/") }
    retire(server, home, "until")
    server.write("go", "")
    answers = Array.new(4) { client.answer }

    assert_equal home, pid_of(answers.first)
    refute_includes answers.drop(1).map { |answer| pid_of(answer) }, home
    assert_equal [nil], answers.map { |answer| answer["connection"] }.uniq
  end

  def test_a_pipeline_without_an_end_does_not_delay_the_end_of_its_worker
    server, client, home = retirable
    request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    client.write(request * 20)
    Process.kill(:TERM, home)
    answers = []
    until server.worker_pids.none?(home) && answers.size > 100
      answers << client.answer
      client.write(request)
    end

    assert_operator answers.map { |answer| pid_of(answer) }.uniq.size, :>=, 2
    assert_equal [[200, nil]], answers.map { |answer| [answer.status, answer["connection"]] }.uniq
  end

  def test_a_body_on_its_way_is_awaited_and_the_connection_goes_on_elsewhere
    server, client, home = retirable
    client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc")
    held = connect_to(server, home).request("GET", "/until?go")
    retire(server, home, "until")
    client.write("def")
    answer = client.answer

    assert_equal [home, "abcdef"], [pid_of(answer), answer.body.split.last]
    refute_equal home, pid_of(client.get)
    server.write("go", "")
    assert_equal home, pid_of(held.answer)
    refute_equal home, pid_of(held.get)
  end

  def test_workers_whose_threads_are_all_busy_take_connections_too
    file = "#{Fairlead::Test::BoardFile::SCRIPT}\nbefore_worker_boot { sleep 0.01 until File.exist?('boot') }"
    server = serve(APP, "-w", 2, "-t", 1, files: { "config/fairlead.rb" => file, "boot" => "" })
    File.unlink(server.path("boot")) # no third worker takes the connections
    clients, home = clients_in_one_worker(server, 6)
    held = connect_to(server, (server.worker_pids - [home]).first).request("GET", "/until?go")
    wait_until("a busy worker") { File.exist?(server.path("inside-until")) }
    Process.kill(:TERM, home)

    wait_until("a worker to take the connections") { statistic(server, "taken_over") == 6 }
    server.write("go", "")
    answers = clients.map(&:get)
    assert_equal [pid_of(held.answer)], answers.map { |answer| pid_of(answer) }.uniq
    server.write("boot", "")
  end

  def test_those_for_whom_nobody_has_a_place_are_closed_after_a_while
    server = serve(APP, "-w", 2, "-t", 2, "--max-connections", 4)
    clients = server.worker_pids.flat_map { |pid| Array.new(3) { connect_to(server, pid) } }
    server.signal(:TTOU)
    wait_until("the end of a worker") { server.worker_pids.size == 1 }
    closed, open = clients.partition { |client| client.readable? && client.closed? }

    assert_equal [2, 4], [closed.size, open.size]
    assert_equal server.worker_pids, open.map { |client| pid_of(client.get) }.uniq
  end

  def test_nothing_that_was_handed_over_is_lost_when_its_worker_is_killed
    server, client, home = retirable
    idle = Array.new(5) { connect_to(server, home) }
    client.request("GET", "/until?go")
    retire(server, home, "until")
    wait_until("the idle clients to migrate") { idle.map { |one| pid_of(one.get) }.none?(home) }
    Process.kill(:KILL, home)

    assert_predicate client, :closed?
    assert_equal [200], idle.map { |one| one.get.status }.uniq
  end

  # A thread of the application keeps the GVL: no Ruby code can learn that the worker must end.
  def test_a_worker_that_has_hung_hands_over_what_it_can
    app = <<~RUBY
      require "fiddle"
      SLEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      #{APP.sub("[200", "SLEEP.call(60) if env['PATH_INFO'] == '/hang'\n  [200")}
    RUBY
    server = serve(app, "-w", 2, "-t", 2, "--worker-timeout", 1)
    clients, home = clients_in_one_worker(server, 6)
    clients.first.write("GET / HTTP/1.1\r\nhost: a\r\nx-half: ")
    hanging = connect_to(server, home).request("GET", "/hang?config.ru")
    wait_until("the end of the worker", seconds: 30) { !server.worker_pids.include?(home) }

    assert_predicate hanging, :closed?
    answers = [clients.shift.write("other\r\n\r\n").answer, *clients.map(&:get)]
    assert_equal [200], answers.map(&:status).uniq
  end

  def test_the_number_of_requests_and_the_address_of_the_client_go_with_a_connection
    server = serve(APP, "-w", 2, "--max-keep-alive", 3, "--remote-address", "proxy_protocol:v1")
    client = connect(server).write("PROXY TCP4 192.0.2.7 192.0.2.8 1000 80\r\n")
    unannounced = connect(server).write("PROXY TCP4 192.0.2.")
    home = pid_of(client.get)
    server.worker_pids.each { |pid| Process.kill(:TERM, pid) if pid == home }
    wait_until("its end") { !server.worker_pids.include?(home) }
    second = client.get
    third = client.get

    refute_equal home, pid_of(second)
    assert_equal ["192.0.2.7"] * 2, [second, third].map { |answer| answer.body.split[1] }
    assert_equal [nil, "close"], [second, third].map { |answer| answer["connection"] }
    assert_equal "192.0.2.9", unannounced.write("9 192.0.2.8 1000 80\r\n").get.body.split[1]
  end

  def test_the_only_worker_has_nobody_and_closes
    server = serve(APP, "-w", 1)
    client = connect(server)
    home = pid_of(client.get)
    Process.kill(:TERM, home)

    assert_predicate client, :closed?
    wait_until("another one") { pid_of(get(server)) != home }
  end

  def test_the_end_of_the_server_is_announced_and_not_delayed
    server = serve(APP, "-w", 3)
    clients = clients_of_all(server, 9)
    busy = connect(server).request("GET", "/until?go")
    wait_until("a request") { File.exist?(server.path("inside-until")) }
    server.signal(:TERM)
    server.wait_for_output(/finishing open requests/)

    assert_empty clients.map(&:rest).join, "each worker closes the connection"
    server.write("go", "")

    assert_equal "close", busy.answer["connection"]
    assert_ends_before_its_timeout server
  end

  private

  # Keep-alive clients of all workers, each after a first request.
  def clients_of_all(server, count)
    wait_until("clients of all workers") do
      clients = Array.new(count) { connect(server) }
      clients if clients.map { |client| pid_of(client.get) }.uniq.size == server.worker_pids.size
    end
  end

  # That many keep-alive clients of one worker, and its pid.
  def clients_in_one_worker(server, count)
    home = server.worker_pids.first
    [Array.new(count) { connect_to(server, home) }, home]
  end

  # Returns a client of this worker; closes connections to other workers, or to a full one.
  def connect_to(server, pid)
    wait_until("a connection to worker #{pid}") do
      client = connect(server)
      answer = client.get
      next client if answer.status == 200 && pid_of(answer) == pid

      client.close
      nil
    end
  end

  # Returns a server with two workers, a client, and the client's worker.
  def retirable(*arguments)
    server = serve(APP, "-w", 2, "-t", 2, *arguments)
    client = connect(server)
    [server, client, pid_of(client.get)]
  end

  # Ends a worker with a running request of that path; returns when it drains, which shows when an idle client has migrated.
  def retire(server, pid, path)
    wait_until("the request") { File.exist?(server.path("inside-#{path}")) }
    idle = connect_to(server, pid)
    Process.kill(:TERM, pid)
    wait_until("the idle client to migrate") { pid_of(idle.get) != pid }
  end

  # Yields clients of a worker, ends it, calls the blocks' results, and expects responses of another worker.
  def each_of_a_retired_worker(*arguments, &block)
    server, client, home = retirable(*arguments)
    clients = [client, connect_to(server, home)]
    rest = clients.map(&block)
    Process.kill(:TERM, home)
    wait_until("its end") { !server.worker_pids.include?(home) }
    rest.each(&:call)
    answers = clients.map(&:answer)

    assert_equal [200, 200], answers.map(&:status)
    refute_includes answers.map { |answer| pid_of(answer) }, home
  end

  # Status and connection field of each response to several clients, each on one connection, until the block has returned.
  def asking(server, count)
    ending = false
    clients = Array.new(count) { connect(server) }
    threads = clients.map do |client|
      Thread.new { [].tap { |answers| answers << client.get.then { |answer| [answer.status, answer["connection"]] } until ending } }
    end
    yield
    ending = true
    threads.map(&:value)
  end

  # Sum of a statistic over all workers.
  def statistic(server, name) = Fairlead::Test::BoardFile.new(server)["workers"].sum { |worker| worker.fetch(name) }

  def pid_of(answer) = Integer(answer.body.split.first, 10)
end
