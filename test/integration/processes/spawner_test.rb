# frozen_string_literal: true

require "test_helper"
require "support/restarts"

# The process that loads the application and forks the workers.
class SpawnerTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  def test_the_supervisor_never_loads_the_application
    server = serve("File.write('loaded', \"\#{Process.pid} \#{Process.ppid}\")\n#{VERSIONED}", "-w", 2, "--preload", files: { "version" => "1" })

    assert_equal "#{server.spawner_pid} #{server.pid}", File.read(server.path("loaded"))
  end

  def test_one_that_is_killed_is_replaced_and_the_workers_do_not_notice
    server = versioned("-w", 2, "--preload")
    before = server.worker_pids
    victim = server.spawner_pid
    Process.kill(:KILL, victim)
    wait_until("another one") { server.spawner_pid && server.spawner_pid != victim }

    assert_equal before, server.worker_pids
    Process.kill(:KILL, before.first)
    wait_until("a new worker") { server.worker_pids.size == 2 && !server.worker_pids.include?(before.first) }
    assert_equal "1", version(server)
    assert_match(/the spawner of generation 1 is lost, starting another one: its spawner ended: killed by SIGKILL/, server.stderr)
  end

  # In the process between the spawner and the worker, which nobody else would end.
  def test_a_fork_that_hangs_is_ended_and_tried_again
    server = versioned("-w", 2, "--preload", "--worker-timeout", 4, files: { "config/fairlead.rb" => <<~RUBY })
      Process.singleton_class.prepend(Module.new do
        def _fork
          super.tap do |pid|
            File.write("hung", Process.pid.to_s) && sleep if pid.zero? && File.exist?("hang")
          end
        end
      end)
    RUBY
    server.write("hang", "")
    spawner = server.spawner_pid
    Process.kill(:KILL, server.worker_pids.first)
    server.wait_for_output(/worker \d cannot start: the fork hangs, perhaps in a handler of the application/)
    File.unlink(server.path("hang"))
    server.wait_for_workers(2)

    assert_equal spawner, server.spawner_pid
    refute Fairlead::Test::Processes.alive?(Integer(File.read(server.path("hung")), 10))
  end

  def test_nothing_is_left_when_the_supervisor_is_killed
    server = versioned("-w", 2, "--preload")
    all = [server.spawner_pid, *server.worker_pids]
    Process.kill(:KILL, server.pid)

    wait_until("their end") { all.none? { |pid| File.exist?("/proc/#{pid}") } }
  end

  def test_what_a_killed_server_leaves_does_not_stand_in_the_way_of_the_next_one
    files = { "config/fairlead.rb" => <<~RUBY }
      pid_file "pid"
      state_path "state"
      activate_control_app "unix://control.sock"
    RUBY
    server = versioned("-w", 2, bind: "unix://app.sock", files: files)
    Process.kill(:KILL, server.pid)
    server.wait_exit
    again = own(server.again).start

    assert_equal "#{again.pid}\n", File.read(server.path("pid"))
    assert_match(/^HTTP.1.1 200 OK\r$/, UNIXSocket.open(server.path("app.sock")) { |socket| socket.write("GET / HTTP/1.0\r\n\r\n") && socket.gets })
    assert_equal 0, again.stop.exitstatus
    assert_empty Dir.children(server.directory) & %w[pid state app.sock control.sock]
  end

  def test_the_supervisor_takes_in_what_the_application_leaves_behind
    linux_only("a parent for orphans")
    server = serve(<<~RUBY, "-w", 1)
      run lambda { |_env|
        reader, writer = IO.pipe
        Process.wait(fork { writer.puts(fork { sleep 0.2; exit!(0) }); exit!(0) })
        [200, {}, [reader.gets]]
      }
    RUBY
    orphan = Integer(answer(server), 10)
    wait_until("its end") { !File.exist?("/proc/#{orphan}") || File.read("/proc/#{orphan}/stat").include?(") Z ") }

    assert_equal server.pid.to_s, File.read("/proc/#{orphan}/stat").split(") ").last.split[1]
    assert_equal 0, server.stop.exitstatus
  end

  def test_an_int_to_it_ends_the_server
    server = versioned("-w", 1)
    Process.kill(:INT, server.spawner_pid)

    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_term_while_it_loads_the_application_ends_everything
    server = launch("File.write('inside', '')\nsleep", "-w", 2, "--preload")
    wait_until("the loading") { File.exist?(server.path("inside")) }

    assert_equal 143, server.stop.exitstatus
    assert_empty server.stderr
  end

  def test_backtraces_of_all_threads_are_printed
    server = serve(<<~RUBY, "-w", 2)
      run lambda { |_env|
        Thread.current.name = "busy"
        File.write("inside", "")
        sleep 0.01 until File.exist?("go")
        [200, {}, ["done"]]
      }
    RUBY
    slow = Thread.new { answer(server) }
    wait_until("the request") { File.exist?(server.path("inside")) }
    server.signal(:PWR)
    server.wait_for_output(/thread busy \(sleep.*\n(\t.*\n)*\t.*config\.ru:4:in/)
    server.write("go", "")

    assert_equal "done", slow.value
  end
end
