# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "support/restarts"

# URG: a worker that has served becomes the spawner of the other workers.
class ReforkTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  # Allocates a large object at the first request, and responds with the process that has allocated it.
  WARMING = <<~'RUBY'
    LARGE = []
    run lambda { |_env|
      LARGE << ("x" * 20_000_000 + Process.pid.to_s) if LARGE.empty?
      [200, {}, ["#{LARGE.first[20_000_000..]} #{Process.pid}"]]
    }
  RUBY

  def test_what_a_worker_has_made_is_in_all_of_them_and_in_memory_once
    server = serve(WARMING, "-w", 3)
    until_all_have_served(server)
    before = proportional_memory(server)
    oldest = server.worker_pids.first
    failures = under_load(server) { refork(server) }

    assert_empty failures
    assert_equal [oldest.to_s], Array.new(12) { answer(server).split.first }.uniq
    assert_equal oldest, server.spawner_pid
    assert_operator before - proportional_memory(server), :>, 20_000 * 1024
  end

  def test_it_can_be_done_again_and_a_lost_worker_comes_from_the_last_one
    server = serve(WARMING, "-w", 2)
    3.times { |count| refork(server, count + 1) }
    workers = server.worker_pids.map { |pid| sockets(pid) }
    supervisor = sockets(server.pid)
    victim = server.worker_pids.first
    Process.kill(:KILL, victim)
    wait_until("another worker") { server.worker_pids.size == 2 && !server.worker_pids.include?(victim) }

    assert_empty workers.reduce(:&) - supervisor, "links of spawners"
    assert_match(/\A\d+ \d+\z/, answer(server))
    assert_equal 0, server.stop.exitstatus
  end

  # The supervisor gets its signs of life, and does not load the application again.
  def test_the_worker_that_has_become_the_spawner_stays_it
    server = serve(WARMING, "-w", 2, files: { "config/fairlead.rb" => "worker_timeout 1\n" })
    until_all_have_served(server)
    refork(server)
    spawner = server.spawner_pid
    over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 3
    wait_until("more than worker_timeout") { Process.clock_gettime(Process::CLOCK_MONOTONIC) > over }
    victim = server.worker_pids.first
    Process.kill(:KILL, victim)
    wait_until("another worker") { server.worker_pids.size == 2 && !server.worker_pids.include?(victim) }

    assert_equal [spawner], [server.spawner_pid]
    assert_equal [spawner.to_s], Array.new(6) { answer(server).split.first }.uniq
    refute_match(/no sign of life|is lost/, server.stderr)
  end

  # Another worker has its former index, and continues to accept connections when it ends.
  def test_the_end_of_that_spawner_harms_no_worker
    server = serve(WARMING, "-w", 2)
    until_all_have_served(server)
    refork(server)
    Process.kill(:KILL, server.spawner_pid)
    wait_until("the log line about the loss") { server.stderr.include?("is lost") }

    assert_equal 2, server.worker_pids.size
    Process.kill(:TERM, server.worker_pids.first)
    Array.new(20) { assert_match(/\A\d+ \d+\z/, answer(server)) }
  end

  def test_hooks_run_at_their_points_and_timers_go_on_in_the_copies
    hooks = <<~'RUBY'
      before_refork { |index| File.write("hooks", "before #{Process.pid}\n", mode: "a") }
      after_refork { File.write("hooks", "after #{Process.pid}\n", mode: "a") }
    RUBY
    app = "Fairlead.run_every(0.02) { File.write(\"tick-\#{Process.pid}\", '') }\n#{WARMING}"
    server = serve(app, "-w", 2, files: { "config/fairlead.rb" => hooks })
    oldest = server.worker_pids.first
    refork(server)

    wait_until("the hooks") { File.readlines(server.path("hooks"), chomp: true) == ["before #{oldest}", "after #{oldest}"] }
    wait_until("the timers") { server.worker_pids.all? { |pid| File.exist?(server.path("tick-#{pid}")) } }
  end

  def test_it_happens_by_itself_after_so_many_requests_and_once
    server = serve(WARMING, "-w", 2, "--fork-worker=30")
    120.times { answer(server) }
    restarted(server, "refork")
    120.times { answer(server) }

    assert_equal 1, server.stdout.scan("refork: worker").size
    assert_equal 0, server.stop.exitstatus
  end

  # Its requests have loaded and cached most. Connections are spread over the workers.
  def test_the_busiest_worker_becomes_the_spawner_by_itself
    server = serve(WARMING, "-w", 2, "--refork-after=30")
    connections = []
    wait_until("a connection to the youngest worker") do
      connections << Net::HTTP.start("127.0.0.1", server.port)
      connections.last.get("/").body.split.last == server.worker_pids.last.to_s
    end
    busiest = server.worker_pids.last
    40.times { connections.last.get("/") }
    restarted(server, "refork")

    assert_equal busiest, server.spawner_pid
  ensure
    connections&.each(&:finish)
  end

  # Each problem: code that the application runs when it is loaded.
  {
    "a thread" => ["Thread.new { sleep }", "thread .*config.ru:1 would not run in the copies"],
    "a connection" => ['require "socket"; LISTENER = TCPServer.new("127.0.0.1", 0); OPEN = TCPSocket.new("127.0.0.1", LISTENER.addr[1])',
                       "the connection to 127.0.0.1:.* would be shared by the copies"],
    "a child process" => ['PIPE = IO.popen("cat", "r+")', "the child process .* \\(cat\\) would be shared by the copies"]
  }.each do |what, (code, reason)|
    define_method(:"test_a_worker_with_#{what.tr(" ", "_")}_serves_on_and_is_not_copied_by_itself") do
      server = serve("#{code}\n#{WARMING}", "-w", 1, "--no-preload", "--refork-after=30")
      pid = server.worker_pids.first
      60.times { assert_equal "#{pid} #{pid}", answer(server) }
      wait_until("the line in the log", seconds: 30) { server.stderr.match?(/refork: none begins by itself for this code: #{reason} \(see/) }
      60.times { assert_equal "#{pid} #{pid}", answer(server) }

      refute_match(/refork: worker/, server.stdout)
      assert_equal 0, server.stop.exitstatus
    end
  end

  # The system drops descriptors of a message for which the receiver has no room.
  def test_a_worker_that_cannot_get_all_listeners_becomes_no_spawner
    server = serve(<<~RUBY, "-w", 1, "-b", "unix://one", "-b", "unix://two")
      run lambda { |env|
        if env["PATH_INFO"] == "/fill"
          Process.setrlimit(:NOFILE, 200)
          files = []
          files << File.open(IO::NULL) until files.size > 200 rescue Errno::EMFILE
          files.pop.close
          FILES = files
        end
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    connect(server).get("/fill")
    server.signal(:URG)
    server.wait_for_output(/refork: failed, generation 1 goes on serving: too few descriptors, "ulimit -n" is 200/)
    sockets = [TCPSocket.new("127.0.0.1", server.port), *%w[one two].map { |name| UNIXSocket.new(server.path(name)) }]
    sockets = sockets.map { |socket| adopt(socket) }

    assert_equal [200] * 3, sockets.map { |client| client.get.status }
  end

  { "dies" => :KILL, "is_stopped" => :QUIT }.each do |what, signal|
    define_method(:"test_if_the_worker_#{what}_on_the_way_the_others_go_on") do
      server = serve(<<~RUBY, "-w", 2, "--shutdown-timeout", 60, files: { "config/fairlead.rb" => "before_refork { File.write('hook', '') }" })
        run lambda { |env|
          next [200, {}, ["hello"]] unless env["PATH_INFO"] == "/slow"

          File.write("inside", Process.pid.to_s)
          sleep
        }
      RUBY
      Thread.new { Net::HTTP.get(URI(server.url("/slow"))) }.report_on_exception = false
      wait_until("the request") { File.exist?(server.path("inside")) }
      wait_until("its worker to be the oldest") { refork_of_the_busy_one?(server) }
      server.wait_for_output(/refork: worker \d+ .* becomes the spawner/)
      Process.kill(signal, Integer(File.read(server.path("inside")), 10))
      server.wait_for_output(/refork: failed, generation 1 goes on serving: the worker ended/)

      assert_equal "hello", answer(server)
      server.wait_for_workers(2)
      refute_path_exists server.path("hook")
    end
  end

  private

  def sockets(pid) = Fairlead::Test::Processes.open_files(pid).grep(/\Asocket:/)

  def refork(server, times = 1)
    server.signal(:URG)
    restarted(server, "refork", times: times)
    wait_until("the other spawner to end") { server.children(/spawner/).size == 1 }
  end

  # The oldest worker becomes the spawner; the other workers are replaced until the oldest is the busy one.
  def refork_of_the_busy_one?(server)
    busy = Integer(File.read(server.path("inside")), 10)
    return server.signal(:URG) if server.worker_pids.first == busy

    others = server.worker_pids - [busy]
    others.each { |pid| Process.kill(:TERM, pid) }
    wait_until("another one") { server.worker_pids.size == 2 && (server.worker_pids & others).empty? }
    false
  end

  def until_all_have_served(server)
    wait_until("responses of all workers") { Array.new(6) { answer(server).split.last }.uniq.size >= 2 || server.worker_pids.size == 1 }
    wait_until("all workers to be warm") do
      answer(server)
      server.worker_pids.all? { |pid| Fairlead::Test::Processes.memory(pid) > 35_000 * 1024 }
    end
  end

  # Memory of all workers and of the spawner; shared memory counts once.
  def proportional_memory(server)
    [*server.worker_pids, server.spawner_pid].sum { |pid| Fairlead::Test::Processes.proportional_memory(pid) }
  end
end
