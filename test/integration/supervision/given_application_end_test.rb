# frozen_string_literal: true

require "test_helper"
require "support/given_programs"

# The end of a server without workers in a program that has handed over its application.
class GivenApplicationEndTest < Minitest::Test
  include Fairlead::Test::GivenPrograms

  def test_term_finishes_what_has_arrived
    server = program
    client = connect(server).request("GET", "/wait")
    wait_for_line(server, /waits/)
    server.signal(:TERM)
    wait_for_line(server, /TERM: finishing/)
    server.write("go", "")

    assert_equal 200, client.answer.status
    assert_equal 0, server.wait_exit.exitstatus
    assert_includes server.stdout, %(run has returned\nthe handler of USR1 is "DEFAULT"\n)
    assert_equal [server.pid.to_s], exits(server)
    assert_nothing_left(server)
  end

  def test_a_request_that_does_not_end_is_aborted_in_time
    server = program
    connect(server).request("GET", "/ever")
    wait_for_line(server, /waits/)

    assert_ends(server)
    assert_equal 0, server.status.exitstatus
    assert_match(%r{aborted GET /ever}, server.stderr)
  end

  # Ruby cannot run, and so no trap can. The files are removed in time, and the program ends as soon as it can.
  def test_c_code_that_keeps_the_lock_holds_up_the_program_and_not_the_end_of_the_server
    server = controlled
    pipe(server)
    connect(server).request("GET", "/keep")
    wait_for_line(server, /kept/)
    command(server, "stop")
    wait_until("the end of the server", seconds: PATIENCE) { closed?(server.port) && !File.exist?(server.path(STATE)) }

    assert_predicate server, :running?
    let_go(server)
    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_it_ends_from_any_thread_before_and_after_a_restart
    [1, 2].each do |version|
      server = program
      restart(server, version.to_s) if version > 1
      version > 1 ? Process.kill(:TERM, server.serving_pid) : get(server, "/stop")

      assert_equal 0, server.wait_exit.exitstatus
      assert_equal version == 1, server.stdout.include?("run has returned")
      assert_nothing_left(server)
    end
  end

  def test_an_exception_of_another_thread_ends_the_server_first
    { "/raise" => ["run has raised of another thread", 0], "/exit" => ["the handler of USR1", 3] }.each do |path, (line, status)|
      server = controlled
      wait_until("the hook") { hooks(server).any? }
      connect(server).request("GET", path)

      assert_equal status, server.wait_exit.exitstatus
      assert_includes server.stdout, line
      assert_nothing_left(server)
      refute_path_exists server.path(STATE)
    end
  end

  def test_a_fork_of_the_application_ends_by_the_signals_of_the_server
    assert_equal Signal.list["TERM"].to_s, get(program, "/end_fork").body.split.last
  end

  def test_a_fork_of_the_application_harms_nothing
    server = controlled
    3.times { assert_equal 200, get(server, "/fork").status }

    assert_equal "ready", json(server, "status")["state"]
    assert_equal server.pid, reply(server).last
    assert_ends(server)
  end
end
