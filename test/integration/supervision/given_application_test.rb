# frozen_string_literal: true

require "test_helper"
require "support/given_programs"
require "support/notify_socket"

# A program that hands over its application, and has no workers: the program itself serves, and its supervisor is one of its
# threads. After a restart another process serves.
class GivenApplicationTest < Minitest::Test
  include Fairlead::Test::GivenPrograms

  def test_the_program_serves_itself_and_keeps_its_threads
    server = program
    first, later = Array.new(2) { pass_time(0.1) && get(server, "/ticks").body.split.map(&:to_i) }

    assert_equal [server.pid] * 2, [first[1], later[1]]
    assert_operator later[2], :>, first[2]
    assert_equal "7", get(server, "/child").body.split.last
  end

  def test_a_hot_restart_keeps_the_process_id_and_loses_no_request
    server = controlled
    seen = []
    failures = under_load(server) do
      2.upto(4) { |number| seen << restart(server, number.to_s, signal: number == 3 ? :USR1 : :USR2) }
    end

    assert_empty failures
    assert_equal [3, false, true], [seen.uniq.size, seen.include?(server.pid), server.running?]
    assert_equal server.pid.to_s, state(server)["pid"]
    wait_until("the hooks of all processes") { hooks(server).size == 10 }
    ran = hooks(server).map { |line| line.split.last.to_i }.tally
    assert_equal [server.pid, *seen].zip([3, 3, 3, 1]).to_h, ran
    assert_ends(server)
    assert_equal 0, server.status.exitstatus
    assert_equal 4, hooks(server).grep(/after_stopped/).uniq.size
  end

  def test_new_code_that_cannot_be_loaded_leaves_the_old_code
    server = program
    server.write("version", "broken")
    server.signal(:USR2)

    assert_refused(server, "", [server.pid])
    assert_restarts(server)
  end

  def test_a_configuration_that_cannot_be_used_leaves_the_old_code
    server = controlled
    server.write("config/fairlead.rb", "threads 'few'")
    server.signal(:USR2)

    assert_refused(server, "few", [server.pid])
    assert_equal "1", reply(server).first
  end

  # The supervisor does not adopt orphans of the application: only the application knows its own children.
  def test_no_orphan_of_the_application_stays_after_a_restart_that_has_failed
    server = program
    server.write("version", "broken")
    server.signal(:USR2)
    wait_for_line(server, /hot restart: failed/)
    3.times { get(server, "/orphan") }

    wait_until("no children") { File.read("/proc/#{server.pid}/task/#{server.pid}/children").empty? }
    assert_ends(server)
  end

  def test_a_command_that_cannot_be_run_is_refused
    server = program(config: %(restart_command "./missing"\n))
    server.signal(:USR2)

    assert_refused(server, "", [server.pid])
  end

  def test_another_number_of_workers_comes_with_a_hot_restart_and_goes
    server = program
    configure(server, "workers 2\n")
    restart_to(server, "2", 2)
    configure(server, "")
    restart_to(server, "3", 0)
    assert_ends(server)
  end

  def test_the_control_server_and_health_endpoints_answer_while_ruby_is_busy
    server = controlled
    pipe(server)
    busy = connect(server).request("GET", "/keep")
    wait_for_line(server, /kept/)

    assert_equal "ready", json(server, "status")["state"]
    assert_equal 200, control(server, "/live").status
    assert_equal 1, json(server, "stats")["busy_threads"]
    let_go(server)
    assert_equal 200, busy.answer.status
  end

  # The old code cannot react, so its engine is closed natively.
  def test_a_restart_goes_on_without_old_code_that_keeps_the_lock
    server = controlled
    pipe(server)
    connect(server).request("GET", "/keep")
    wait_for_line(server, /kept/)
    server.write("version", "2")
    command(server, "restart")
    wait_for_line(server, /the application of this process did not end in time; closing its connections/)
    wait_for_line(server, /hot restart: done/)

    assert_equal "2", reply(server).first
    assert_ends(server)
  end

  # Its threads would do everything twice, and its sockets would lead to old code.
  [0, 2].each do |workers|
    define_method(:"test_nothing_of_the_old_code_goes_on_after_a_restart_with_#{workers}_workers") do
      server = program(config: "workers #{workers}\n", files: { "running" => "" })
      stream = connect(server).request("GET", "/hijack")
      stream.read_through("..")
      name = first_argument(server)
      restart_to(server, "2", workers)

      wait_until("the end of the stream", seconds: PATIENCE) { ended?(stream.socket) }
      wait_until("the end of the old threads", seconds: PATIENCE) { !running(server).include?(server.pid) }
      assert_equal "fairlead-superv", File.read("/proc/#{server.pid}/comm").chomp
      assert_equal name, first_argument(server)
      assert_restarts(server, "3")
      assert_ends(server)
    end
  end

  def test_the_program_of_the_supervisor_hears_the_signals_of_the_one_before
    server = program
    restart(server, "2")
    wait_for_line(server, "hot restart: done")

    assert_ends(server)
    assert_equal 0, server.status.exitstatus
    refute_includes server.stdout, "run has returned"
  end

  def test_a_killed_successor_is_replaced
    server = program

    assert_replaces(server, restart(server, "2"), count: 1)
    assert_equal "2", reply(server).first
    assert_ends(server, :INT)
    assert_equal 0, server.status.exitstatus
  end

  def test_a_hung_request_of_the_program_does_not_hold_up_a_restart
    server = program
    connect(server).request("GET", "/ever")
    wait_for_line(server, /waits/)
    server.write("version", "2")
    server.signal(:USR2)
    wait_for_version(server, "2")
    wait_for_line(server, %r{aborted GET /ever})
    wait_until("the end of the restart", seconds: PATIENCE) { server.stdout.include?("hot restart: done") }

    assert_equal server.serving_pid, reply(server).last
    assert_ends(server)
  end

  # The supervisor must not reap the application's children.
  def test_the_application_waits_for_its_own_children_whenever_it_likes
    server = program

    assert_equal "7", connect(server).get("/late").body.split.last
  end

  def test_systemd_hears_of_it
    Dir.mktmpdir("fairlead-test-") do |folder|
      socket = Fairlead::Test::NotifySocket.new("#{folder}/notify")
      server = program(environment: { "NOTIFY_SOCKET" => "#{folder}/notify" })
      wait_until("READY=1") { socket.events == ["READY=1"] }
      restart(server, "2")
      wait_until("the reload") { socket.events == %w[READY=1 RELOADING=1 READY=1] }
      server.stop
      wait_until("the end") { socket.events.last == "STOPPING=1" }
    ensure
      socket&.close
    end
  end

  private

  def first_argument(server) = File.read("/proc/#{server.pid}/cmdline")[/[^\0]*/]

  # Processes with a running thread of the application.
  def running(server)
    server.write("running", "")
    wait_until("a running process") { File.size(server.path("running")) > 1000 }
    File.read(server.path("running")).split.map(&:to_i).uniq
  end

  def ended?(socket)
    socket.read_nonblock(4096, exception: false).nil?
  rescue Errno::ECONNRESET
    true
  end

  def restart_to(server, version, workers)
    server.write("version", version)
    server.signal(:USR2)
    wait_for_version(server, version)
    wait_for_serving(server, workers)
  end
end
