# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/supervision"

# The system refuses a process, a thread, a descriptor or space on the disk at the wrong moment.
class ShortOfProcessesTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  SHAPES.each do |name, workers|
    define_method(:"test_a_hot_restart_without_processes_fails_and_works_later_#{name}") do
      server = without_processes(workers)
      serving = server.serving_pids
      server.signal(:USR2)
      assert_refused(server, //, serving)
      lift(server.pid, "Max processes")

      assert_restarts(server)
      assert_ends(server)
    end

    define_method(:"test_ctl_restart_without_processes_says_so_#{name}") do
      server = without_processes(workers, *FLAGS)
      serving = server.serving_pids
      status, _, errors = ctl("-S", server.path(STATE), "--wait", "restart")

      assert_equal 1, status
      assert_match(/restart failed: \S/, errors)
      assert_refused(server, //, serving)
    end

    define_method(:"test_a_hot_restart_without_room_for_temporary_files_works_or_changes_nothing_#{name}") do
      server = prepared(workers, files: { "small/.keep" => "" }, environment: { "TMPDIR" => "small" }, &:itself)
      with_small_disk(server, "small") do
        server.start
        fill_disk(server, "small")
        server.write("version", "2")
        server.signal(:USR2)
        wait_until("an outcome", seconds: PATIENCE) { server.exited? || reply(server)&.first == "2" || server.stderr[/hot restart: failed/] }

        assert_predicate server, :running?
        assert reply(server)
        assert_ends(server)
      end
    end
  end

  def test_a_phased_restart_without_processes_fails_and_works_later
    server = without_processes(2)
    serving = server.serving_pids
    server.signal(:USR1)
    assert_refused(server, //, serving, kind: "phased restart")
    lift(server.pid, "Max processes")

    assert_restarts(server, signal: :USR1)
  end

  # The supervisor has used all of its descriptors, and the spawner is lost.
  def test_a_lost_spawner_without_descriptors_is_replaced_later
    server = supervised(2)
    wait_until("the spawner") { server.spawner_pid }
    victim = server.serving_pids.first
    without_descriptors(server) do
      Process.kill(:KILL, server.spawner_pid)
      wait_for_line(server, /the spawner of generation 1 is lost/)
      Process.kill(:KILL, victim)
      wait_for_serving(server, 1)
      pass_time(2)

      assert_predicate server, :running?
      assert_equal "1", reply(server)&.first
    end
    wait_for_serving(server, 2)
    wait_until("a spawner") { server.spawner_pid }
    assert_ends(server)
  end

  %i[USR1 USR2].each do |signal|
    define_method(:"test_#{signal}_without_descriptors_fails_and_works_later") do
      server = supervised(2)
      serving = server.serving_pids
      without_descriptors(server) do
        server.signal(signal)
        assert_refused(server, //, serving, kind: signal == :USR1 ? "phased restart" : "hot restart")
      end

      assert_restarts(server, signal: signal)
    end
  end

  # Clients of the control server use descriptors, too, even without a token.
  def test_silent_clients_of_the_control_server_take_no_descriptors_from_restarts
    server = supervised(1, *FLAGS)
    port = Integer(state(server).fetch("control_url")[/\d+\z/], 10)
    limit(server.pid, nofile: Fairlead::Test::Processes.descriptors(server.pid) + 24)
    clients = Array.new(40) { adopt(TCPSocket.new("127.0.0.1", port)) }
    server.write("version", "2")
    server.signal(:USR1)
    wait_until("an outcome", seconds: PATIENCE) { server.exited? || reply(server)&.first == "2" || server.stderr[/phased restart: failed/] }

    assert_predicate server, :running?
    clients.each(&:close)
    assert_restarts(server, "3", signal: :USR1)
  end

  # As with EACCES, E2BIG and ENOMEM.
  def test_a_program_that_cannot_be_started_fails_the_restart
    server = supervised(1, config: %(restart_command "/nowhere/fairlead"))
    serving = server.serving_pids
    server.signal(:USR1)

    assert_refused(server, /No such file or directory/, serving, kind: "phased restart")
  end

  def test_term_is_obeyed_while_no_process_can_be_created
    server = without_processes(2)
    workers = server.worker_pids
    Process.kill(:KILL, server.spawner_pid)
    wait_for_line(server, /the spawner of generation 1 is lost/)
    Process.kill(:KILL, workers.first)
    wait_until("the end of the worker", seconds: 5) { !server.worker_pids.include?(workers.first) }

    assert_ends(server)
  end

  # Ruby retries forever inside of fork. Such a spawner counts as one that hangs.
  def test_a_spawner_that_cannot_fork_is_replaced
    server = strangers_server(2)
    limit(server.spawner_pid, nproc: 1)

    assert_replaces(server, server.worker_pids.first)
    assert_ends(server)
  end

  private

  # A user's limit applies to all users but root.
  def strangers_server(workers, *arguments)
    skip_unless_root
    server = prepared(workers, *arguments, kind: Fairlead::Test::AsStranger, &:start)
    wait_until("the spawner") { workers.zero? || server.spawner_pid }
    server
  end

  # The supervisor cannot start any process.
  def without_processes(workers, *arguments) = strangers_server(workers, *arguments).tap { |server| limit(server.pid, nproc: 1) }

  # The supervisor cannot open any file.
  def without_descriptors(server)
    open = Dir.children("/proc/#{server.pid}/fd").map(&:to_i)
    limit(server.pid, nofile: (0..).find { |number| !open.include?(number) })
    yield
  ensure
    lift(server.pid, "Max open files") if server.running?
  end
end
