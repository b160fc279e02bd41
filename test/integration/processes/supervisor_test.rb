# frozen_string_literal: true

require "test_helper"
require "net/http"

# A server with workers, as processes.
class SupervisorTest < Minitest::Test
  include Fairlead::Test::Servers

  WHO = "run ->(env) { [200, {}, [Process.pid.to_s]] }"

  # As in SingleTest, but it responds with its process id.
  PATIENT = <<~'RUBY'
    run lambda { |_env|
      File.write("inside-#{Process.pid}", "")
      sleep 0.01 until File.exist?("go")
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # Holds the GVL for a minute on demand.
  HANGING = <<~RUBY
    require "fiddle"
    SLEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    run lambda { |env|
      next [200, {}, ["well"]] unless env["PATH_INFO"] == "/hang"

      File.write("inside-\#{Process.pid}", "")
      SLEEP.call(60)
    }
  RUBY

  def test_every_worker_serves
    server = serve(PATIENT, "-w", "2", "-t", "1")
    answers = [request_in(server), request_in(server, count: 2)]
    server.write("go", "")

    assert_equal server.worker_pids.map(&:to_s), answers.map(&:value).sort_by(&:to_i)
  end

  def test_a_worker_that_is_killed_is_replaced_and_nobody_notices
    server = serve(WHO, "-w", "2")
    victim, survivor = server.worker_pids
    Process.kill(:KILL, victim)
    wait_until("the replacement") { (server.worker_pids - [victim]).size == 2 }

    assert_includes server.worker_pids, survivor
    assert_match(/worker 0 \(pid #{victim}\) ended unexpectedly: killed by SIGKILL/, server.stderr)
    5.times { refute_equal victim.to_s, get(server) }
  end

  def test_a_worker_that_stands_still_is_killed_and_replaced
    server = serve(WHO, "-w", "2", "--worker-timeout", "1")
    victim = server.worker_pids.first
    Process.kill(:STOP, victim)
    server.wait_for_output(/worker 0 \(pid #{victim}\) has shown no sign of life for 1 s; replacing it \(its threads: ruby\S* stopped, /)

    wait_until("the replacement") { (server.worker_pids - [victim]).size == 2 }
    server.wait_for_output(/worker 0 \(pid #{victim}\) did not end in time; killing it/)
  end

  def test_a_worker_that_takes_too_long_to_boot_is_replaced
    server = launch(WHO, "-w", "1", "--worker-boot-timeout", "0.5",
                    files: { "config/fairlead.rb" => "before_worker_boot { sleep unless File.exist?('go') }" })
    server.wait_for_output(/worker 0 \(pid \d+\) is not ready after 0\.5 s/)
    server.write("go", "")

    server.wait_for_output(/ready/)
  end

  def test_workers_that_die_while_they_boot_are_retried_with_pauses
    server = launch(WHO, "-w", "1", files: { "config/fairlead.rb" => "before_worker_boot { exit!(9) unless File.exist?('go') }" })
    server.wait_for_output(/exit status 9\n.*exit status 9\n.*starting the next one in 1 s/)
    server.write("go", "")

    server.wait_for_output(/ready/)
  end

  { "exit 2" => "exit status 2", "Process.kill(:KILL, Process.pid); sleep" => "killed by SIGKILL" }.each do |code, reason|
    [1, 3].each do |workers|
      define_method(:"test_a_server_gives_up_whose_#{workers}_workers_run_#{code[/\w+/]}_while_they_boot") do
        server = launch(WHO, "-w", workers, "--no-preload", files: { "config/fairlead.rb" => "before_worker_boot { #{code} }" })

        assert_equal 1, server.wait_exit(seconds: 40).exitstatus
        assert_match(/fairlead: no worker could start in 4 attempts; the last failure: #{reason}\n\z/, server.stderr)
        assert_empty server.worker_pids
      end
    end
  end

  def test_a_worker_that_cannot_be_replaced_ends_no_server_that_has_served
    server = serve(WHO, "-w", "1", files: { "config/fairlead.rb" => "before_worker_boot { exit 2 if File.exist?('broken') }" })
    server.write("broken", "")
    Process.kill(:KILL, *server.worker_pids)
    wait_until("more deaths than attempts", seconds: 40) { server.stderr.scan("exit status 2").size > 4 }
    File.unlink(server.path("broken"))
    wait_until("a worker", seconds: 40) { server.stdout.scan("worker 0 booted").size == 2 }

    assert_equal server.worker_pids.first.to_s, get(server)
  end

  %i[TERM INT].each do |signal|
    define_method(:"test_#{signal}_while_a_request_runs_finishes_it") do
      server = serve(PATIENT, "-w", "2")
      answer = request_in(server)
      server.signal(signal)
      server.wait_for_output(/#{signal}: finishing/)
      server.write("go", "")

      assert_match(/\A\d+\z/, answer.value)
      assert_equal 0, server.wait_exit.exitstatus
      assert_empty server.stderr
    end
  end

  def test_a_ctrl_c_in_the_terminal_finishes_what_runs
    server = serve(PATIENT, "-w", "2")
    answer = request_in(server)
    Process.kill(:INT, -server.pid) # the whole group, like a terminal
    server.wait_for_output(/INT: finishing/)
    server.write("go", "")

    assert_match(/\A\d+\z/, answer.value)
    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_a_second_int_cuts_off_what_still_runs
    server = serve(PATIENT, "-w", "2")
    answer = request_in(server)
    server.signal(:INT)
    server.wait_for_output(/INT: finishing/)

    assert_equal 0, server.stop(:INT).exitstatus
    assert_equal :cut_off, answer.value
  end

  def test_what_takes_longer_than_the_shutdown_timeout_is_aborted
    server = serve(PATIENT, "-w", "1", "--shutdown-timeout", "0.2")
    answer = request_in(server)

    assert_equal 0, server.stop.exitstatus
    assert_match(/503 Service Unavailable/, answer.value)
    assert_match(/did not finish within 0\.2 s/, server.stderr)
  end

  def test_a_worker_that_hangs_does_not_keep_the_server_from_ending
    server = serve(HANGING, "-w", "1", "--shutdown-timeout", "0")
    request_in(server, "/hang")

    assert_equal 0, server.stop.exitstatus
    assert_match(/worker 0 .* did not end in time; killing it/, server.stderr)
  end

  def test_a_worker_that_never_gives_up_the_lock_of_ruby_is_replaced
    server = serve(HANGING, "-w", "1", "--worker-timeout", "1")
    victim = server.worker_pids.first
    request_in(server, "/hang")
    server.wait_for_output(/worker 0 \(pid #{victim}\) has shown no sign of life/)

    wait_until("the replacement") { (server.worker_pids - [victim]).any? }
    assert_equal "well", get(server)
  end

  def test_when_the_supervisor_is_killed_its_workers_finish_and_end
    server = serve(PATIENT, "-w", "2")
    workers = server.worker_pids
    answer = request_in(server)
    Process.kill(:KILL, server.pid)
    server.wait_for_output(/the supervisor is gone/)
    server.write("go", "")

    assert_match(/\A\d+\z/, answer.value)
    wait_until("their end") { workers.none? { |pid| File.exist?("/proc/#{pid}") } }
  end

  def test_ttin_and_ttou_change_the_number_of_workers
    server = serve(WHO, "-w", "1")
    server.signal(:TTIN)
    server.wait_for_workers(2)
    server.signal(:TTOU)
    server.wait_for_workers(1)
    server.signal(:TTOU)
    server.wait_for_output(/the last worker cannot be removed/)

    assert_match(/\A\d+\z/, get(server))
    refute_match(/ended unexpectedly/, server.stderr)
  end

  def test_hup_reopens_the_access_log_in_every_worker
    server = serve(WHO, "-w", "2", "--access-log", "access.log")
    File.rename(server.path("access.log"), server.path("access.log.1"))
    server.signal(:HUP)
    wait_until("all processes to reopen it") { server.stdout.scan("reopened the access log").size == 4 }
    8.times { get(server) }

    wait_until("the lines") { File.readlines(server.path("access.log")).size == 8 }
    assert_empty File.read(server.path("access.log.1"))
  end

  def test_hooks_run_at_their_points
    hooks = <<~RUBY
      note = ->(text) { File.open("notes", "a") { |file| file.puts(text) } }
      before_fork { note["before_fork"] }
      before_worker_fork { |index| note["before_worker_fork \#{index}"] }
      after_worker_fork { |index| note["after_worker_fork \#{index}"] if File.exist?("notes") }
      before_worker_boot { |index| note["before_worker_boot \#{index}"] }
      before_worker_shutdown { |index| note["before_worker_shutdown \#{index}"] }
      after_booted { note["after_booted"] }
      after_stopped { note["after_stopped"] }
    RUBY
    server = serve("File.open('notes', 'a') { |file| file.puts('app') }\n#{WHO}", "-w", "1", files: { "config/fairlead.rb" => hooks })
    server.stop
    notes = File.readlines(server.path("notes"), chomp: true)

    assert_equal ["before_fork", "before_worker_fork 0"], notes.first(2)
    assert_equal ["after_worker_fork 0", "app", "before_worker_boot 0"].sort, notes[2, 3].sort
    assert_operator notes.index("before_worker_boot 0"), :<, notes.index("app")
    assert_equal ["after_booted", "before_worker_shutdown 0", "after_stopped"], notes.drop(5)
  end

  def test_a_hook_hears_how_each_worker_has_ended
    hook = <<~'RUBY'
      after_worker_shutdown do |worker|
        status = worker.process_status
        File.write("ends", "#{worker.index} #{worker.pid} #{status.success?.inspect} #{status.exitstatus.inspect} #{status.termsig.inspect}\n", mode: "a")
      end
    RUBY
    server = serve(WHO, "-w", "1", files: { "config/fairlead.rb" => hook })
    killed = server.worker_pids.first
    Process.kill(:KILL, killed)
    wait_until("the hook") { File.exist?(server.path("ends")) }
    last = wait_until("another worker") { (server.worker_pids - [killed]).first }
    server.wait_for_output(/worker 0 booted \(pid #{last}/)
    server.stop

    assert_equal ["0 #{killed} nil nil 9", "0 #{last} true 0 nil"], File.readlines(server.path("ends"), chomp: true)
  end

  def test_a_term_may_be_what_ends_the_server
    [%w[-w 1], %w[-w 0]].each do |flags|
      server = serve(WHO, *flags, "--raise-exception-on-sigterm")

      assert_equal 143, server.stop.exitstatus
      assert_match(/fairlead stopped/, server.stdout)
      assert_empty server.worker_pids
    end
  end

  def test_a_preloaded_application_is_loaded_once
    server = serve("File.open('loads', 'a') { |file| file.puts('x') }\n#{WHO}", "-w", "2")

    assert_equal 1, File.readlines(server.path("loads")).size
  end

  def test_without_preloading_every_worker_loads_the_application
    server = serve("File.open('loads', 'a') { |file| file.puts('x') }\n#{WHO}", "-w", "2", "--no-preload")

    assert_equal 2, File.readlines(server.path("loads")).size
  end

  def test_a_broken_application_is_one_message_and_a_failure
    [["--preload", "[PID] fairlead: "], ["--no-preload", "[PID] worker N cannot start: "]].each do |flag, prefix|
      server = launch("\nrun Missing\n", "-w", "2", flag)

      assert_equal 1, server.wait_exit.exitstatus
      assert_equal "#{prefix}config.ru:2: uninitialized constant Missing (NameError)\n",
                   server.stderr.gsub(/^\[\d+\]/, "[PID]").sub(/worker \d/, "worker N")
    end
  end

  def test_term_while_the_workers_load_the_application_ends_them
    server = launch("File.write(\"inside-\#{Process.pid}\", '')\nsleep", "-w", "2", "--no-preload")
    wait_until("the loading") { Dir.glob(server.path("inside-*")).size == 2 }

    assert_equal 0, server.stop.exitstatus
    assert_empty server.stderr
  end

  def test_the_processes_of_the_application_are_left_to_it
    server = serve(<<~RUBY, "-w", "2")
      child = fork { exit!(5) }
      sleep 0.01 until File.read("/proc/\#{child}/stat").include?(") Z ")
      Thread.new { sleep 0.01 until File.exist?("go"); File.write("status", Process.wait2(child).last.exitstatus) }
      #{WHO}
    RUBY
    server.signal(:CHLD)
    server.wait_for_workers(2)
    server.write("go", "")

    wait_until("the status of the child") { File.exist?(server.path("status")) && File.read(server.path("status")) == "5" }
  end

  def test_the_titles_name_the_processes
    server = serve(WHO, "-w", "1", "--tag", "shop")

    assert_match(/\Afairlead \S+ \(tcp:\S+\) \[shop\]/, title(server.pid))
    assert_match(/\Afairlead: worker 0 \[shop\]/, title(server.worker_pids.first))
  end

  private

  def title(pid) = File.read("/proc/#{pid}/cmdline")

  def get(server)
    Net::HTTP.start("127.0.0.1", server.port) { |http| http.get("/", "connection" => "close").body }
  end

  # Starts requests, and returns when they are inside the application; the value is the response, or :cut_off.
  def request_in(server, path = "/", count: 1)
    thread = Thread.new do
      Net::HTTP.start("127.0.0.1", server.port, max_retries: 0, read_timeout: 60) { |http| http.get(path).body }
    rescue EOFError, SystemCallError
      :cut_off
    end
    wait_until("the request") { Dir.glob(server.path("inside-*")).size >= count }
    thread
  end
end
