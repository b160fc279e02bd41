# frozen_string_literal: true

require "test_helper"
require "support/launched_by"
require "support/supervision"

# Processes that the application has forked, and that outlive the server. They have copies of the listeners, but must not
# keep the address in use; and no connection that has arrived by then may be lost.
class ForkedListenersTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients

  # /fork leaves a process behind, /slow waits for a file, /shut shuts the listeners down.
  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/fork"
        pid = fork { Process.setsid; sleep }
        Process.detach(pid)
        next [200, {}, ["1 #{pid}"]]
      when "/shut"
        sockets = Dir.children("/proc/self/fd").filter_map { |fd| Socket.for_fd(fd.to_i).tap { |one| one.autoclose = false } rescue nil }
        sockets.each { |one| one.shutdown if one.getsockopt(:SOCKET, :ACCEPTCONN).bool }
      when "/slow"
        File.write("slow", "")
        sleep 0.01 until File.exist?("go")
      end
      [200, {}, ["1 #{Process.pid}"]]
    }
  RUBY

  # A program that contains a server. USR1 stops it and USR2 starts it again.
  PROGRAM = <<~'RUBY'
    require "fairlead"
    $stdout.sync = true
    app = ->(env) { [200, {}, ["1 #{env["PATH_INFO"] == "/fork" ? fork { Process.setsid; sleep } : Process.pid}"]] }
    server = Fairlead::Server.new(app, bind: File.read("bind"), threads: [1, 3])
    { "USR1" => :stop, "USR2" => :start }.each do |signal, task|
      trap(signal) { Thread.new { server.public_send(task) && puts("done: #{task}") } }
    end
    server.start { puts "listening on #{server.addresses.first}", "fairlead inside ready" }
    sleep
  RUBY

  CROWD = 20

  def teardown
    super
  ensure
    left.each { |pid| Process.kill(:KILL, pid) }
  end

  SHAPES.each do |name, workers|
    %i[TERM QUIT].each do |signal|
      define_method(:"test_after_#{signal}_another_server_can_listen_at_once_#{name}") do
        server = supervised(workers, app: APP)
        leave_processes(server)
        server.signal(signal)
        server.wait_exit

        assert closed?(server.port), "no process listens"
        TCPServer.new("127.0.0.1", server.port).close
        assert_all_left
      end
    end

    define_method(:"test_connections_are_refused_while_the_last_requests_are_finished_#{name}") do
      server = supervised(workers, app: APP, config: %(shutdown_timeout 30\nbind "unix://socket"\n))
      leave_processes(server)
      slow = adopt(TCPSocket.new("127.0.0.1", server.port)).request("GET", "/slow")
      wait_until("the request") { File.exist?(server.path("slow")) }
      server.signal(:TERM)
      wait_until("a free port") { closed?(server.port) }
      wait_until("the end of the other listener") { refuses?(server.path("socket")) }
      server.write("go", "")

      assert_equal 200, slow.answer.status
      assert_equal 0, server.wait_exit.exitstatus
      assert_all_left
    end

    %w[tcp unix].each do |scheme|
      define_method(:"test_what_waits_in_the_backlog_is_answered_#{name}_#{scheme}") do
        server = supervised(workers, app: APP, config: %(bind "unix://socket"\nworker_timeout 30\nshutdown_timeout 30\n))
        leave_processes(server)
        stopped = server.serving_pids.each { |pid| Process.kill(:STOP, pid) }
        clients = Array.new(CROWD) { adopt(dial(server, scheme)).request("GET", "/") }
        server.signal(:TERM)
        stopped.each { |pid| Process.kill(:CONT, pid) }

        assert_equal [200] * CROWD, clients.map { |client| client.answer.status }
        assert_equal 0, server.wait_exit.exitstatus
      end
    end

    define_method(:"test_each_connection_that_a_unix_socket_takes_is_answered_#{name}") do
      server = supervised(workers, app: APP, config: %(bind "unix://socket"\nshutdown_timeout 30\n))
      leave_processes(server)
      answers = Thread::Queue.new
      threads = Array.new(3) { Thread.new { ask_until_refused(server, answers) } }
      wait_until("some responses") { answers.size > 50 }
      server.signal(:TERM)
      threads.each(&:join)

      assert_equal [200], Array.new(answers.size) { answers.pop }.uniq
      assert_equal 0, server.wait_exit.exitstatus
    end

    define_method(:"test_a_restart_leaves_the_listeners_alone_#{name}") do
      server = supervised(workers, app: "#{VERSIONED.sub("run", "served =")}\n#{APP.sub("run", "forked =")}\n" \
                                        'run ->(env) { (env["PATH_INFO"] == "/fork" ? forked : served).call(env) }')
      leave_processes(server)
      assert_restarts(server)
      assert_ends(server)
      assert_all_left
    end

    # The kernel repeatedly reports to each worker that such a listener is readable.
    define_method(:"test_a_listener_that_another_process_has_shut_down_uses_no_processor_time_#{name}") do
      server = supervised(workers, app: APP, config: %(bind "unix://socket"\n))
      assert reply(server, "/shut")
      assert closed?(server.port) && refuses?(server.path("socket"))

      server.serving_pids.each { |pid| Fairlead::Test::Processes.wait_for_idle_second(pid) }
      assert_ends(server)
    end
  end

  # --- in a program

  def test_a_server_in_a_program_stops_and_starts_again_at_the_same_address
    port = TCPServer.open("127.0.0.1", 0) { |one| one.addr[1] }
    program = program("tcp://127.0.0.1:#{port}")
    2.times do |round|
      leave_processes(program)
      command(program, :USR1, "stop", round)
      assert closed?(port), "no process listens"
      command(program, :USR2, "start", round)
      assert_equal "1", reply(program).first
    end
    assert_all_left
  end

  def test_rackup_without_and_with_workers
    [0, 2].each do |workers|
      rackup = Gem.bin_path(Gem::Specification.find_all_by_name("rackup").any? ? "rackup" : "rack", "rackup")
      flags = ["-s", "fairlead", "-o", "127.0.0.1", "-p", 0, "-E", "none", "-O", "workers=#{workers}"]
      server = own(Fairlead::Test::LaunchedBy.new(rackup, APP, *flags))
      leave_processes(server.start)
      server.stop

      assert closed?(server.port), "no process listens"
      assert_all_left
    end
  end

  private

  def left = @left ||= []

  # Each comes from another request, so that with several workers there are some of each.
  def leave_processes(server)
    6.times { left << reply(server, "/fork").last }
  end

  def assert_all_left = left.each { |pid| assert Fairlead::Test::Processes.alive?(pid), "#{pid} is alive" }

  def dial(server, scheme) = scheme == "tcp" ? TCPSocket.new("127.0.0.1", server.port) : UNIXSocket.new(server.path("socket"))

  def refuses?(path)
    UNIXSocket.new(path).close
    false
  rescue Errno::ECONNREFUSED
    true
  end

  def ask_until_refused(server, answers)
    loop do
      client = Fairlead::Test::HttpClient.new(UNIXSocket.new(server.path("socket")))
      answers << client.get("/", "connection" => "close").status
    ensure
      client&.close
    end
  rescue Errno::ECONNREFUSED, Errno::ENOENT
    nil
  end

  def program(address)
    own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => PROGRAM, "bind" => address })).start
  end

  def command(program, signal, task, round)
    program.signal(signal)
    wait_until("the #{task}") { program.stdout.scan("done: #{task}").size > round }
  end
end
