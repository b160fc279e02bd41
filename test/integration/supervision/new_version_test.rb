# frozen_string_literal: true

require "test_helper"
require "support/another_version"
require "support/certificates"
require "support/control"
require "support/launched_by"
require "support/notify_socket"

# A restart to another version of Fairlead: the supervisor executes the program of that version, which takes over all
# processes, and returns to its own program after any failure.
class NewVersionTest < Minitest::Test
  include Fairlead::Test::AnotherVersion
  include Fairlead::Test::Secured
  include Fairlead::Test::Controlled

  CONTROL = %(control_url "auto"; state_path "state"\n)

  def test_a_pause_goes_on_under_another_version
    server = versioned_server(2, config: CONTROL)
    said_by_ctl(server, "pause")
    deploy_other_version(server)
    server.signal(:USR2)
    wait_until("the restart") { server.stdout.include?("hot restart: done") }

    assert_match(/^paused: new requests wait/, said_by_ctl(server, "status"))
    said_by_ctl(server, "resume")
    assert_other_version(server, workers: 2)
  end

  SHAPES.each do |name, workers|
    %i[USR1 USR2].each do |signal|
      define_method(:"test_#{signal}_brings_in_another_version_under_load_#{name}") do
        server = versioned_server(workers, config: CONTROL)
        failures = under_load(server) do
          deploy_other_version(server)
          server.signal(signal)
          assert_other_version(server, workers: workers)
        end

        assert_empty failures
        assert_equal 1, server.stdout.scan("has Fairlead #{VERSION}; its supervisor takes over").size
        assert_includes said_by_ctl(server, "status"), VERSION
        assert_further_restarts(server, workers)
        assert_ends(server)
      end
    end

    define_method(:"test_an_application_that_cannot_be_loaded_leaves_the_first_version_#{name}") do
      server = versioned_server(workers)
      program = supervised_by(server)
      serving = server.serving_pids
      deploy_other_version(server, "broken")
      server.signal(:USR2)

      assert_first_version(server, program, "this code is broken")
      wait_until("the end of the new code") { server.serving_pids == serving }
      assert_ends(server)
    end

    define_method(:"test_a_program_that_cannot_read_the_state_gives_it_back_#{name}") do
      server = versioned_server(workers, format: 99)
      program = supervised_by(server)
      serving = server.serving_pids
      failures = under_load(server) do
        deploy_other_version(server)
        server.signal(:USR2)
        assert_first_version(server, program, "format 1, and this program reads 99")
      end

      assert_empty failures
      wait_until("the end of the new code") { server.serving_pids == serving }
      assert_goes_on(server, workers, program)
    end

    define_method(:"test_new_code_that_does_not_serve_gives_everything_back_#{name}") do
      server = crashing(workers)
      program = supervised_by(server)
      failures = under_load(server) do
        deploy_other_version(server, "crashing")
        server.signal(:USR2)
        assert_first_version(server, program, workers.zero? ? "" : "worker 0 ended")
      end

      assert_empty failures
      wait_for_serving(server, workers)
      assert_goes_on(server, workers, program)
    end

    define_method(:"test_TERM_while_the_other_version_takes_over_ends_the_server_#{name}") do
      server = crashing(workers)
      deploy_other_version(server)
      server.signal(:USR2)
      wait_for_line(server, /supervisor takes over/, seconds: PATIENCE)

      assert_ends(server)
    end

    define_method(:"test_a_second_USR2_while_the_other_version_takes_over_is_executed_after_it_#{name}") do
      server = versioned_server(workers)
      deploy_other_version(server)
      server.signal(:USR2)
      wait_for_line(server, /supervisor takes over/, seconds: PATIENCE)
      server.write("version", "3")
      server.signal(:USR2)
      wait_until("both restarts", seconds: PATIENCE) { server.stdout.scan("restart: done").size == 2 }

      assert_other_version(server, version: "3", workers: workers)
      assert_ends(server)
    end
  end

  def test_a_worker_of_the_first_version_may_die_meanwhile
    server = crashing(2)
    victim = server.worker_pids.last
    deploy_other_version(server)
    server.signal(:USR2)
    wait_for_line(server, /supervisor takes over/, seconds: PATIENCE)
    Process.kill(:KILL, victim)

    assert_other_version(server, workers: 2)
    assert_ends(server)
  end

  def test_the_release_of_the_first_version_may_be_deleted_meanwhile
    server = crashing(2, files: { "old/fairlead/.keep" => "" }) do |prepared|
      FileUtils.cp(File.expand_path("../../../lib/#{PROGRAM}", __dir__), prepared.path("old/#{PROGRAM}"))
    end
    program = supervised_by(server)

    assert_equal server.path("old/#{PROGRAM}"), program
    deploy_other_version(server, "crashing")
    FileUtils.rm_r(server.path("old"))
    server.signal(:USR2)

    assert_first_version(server, program, "worker 0 ended")
    assert_ends(server)
  end

  def test_a_program_that_does_not_run_is_refused_before_anything_changes
    server = versioned_server(2)
    program = supervised_by(server)
    serving = server.serving_pids
    File.unlink(server.path("another/#{PROGRAM}"))
    server.write("another/#{PROGRAM}", "#!/bin/false\n")
    File.chmod(0o755, server.path("another/#{PROGRAM}"))
    deploy_other_version(server)
    server.signal(:USR2)

    assert_first_version(server, program, "does not run")
    assert_equal serving, server.serving_pids
  end

  def test_a_program_of_another_version_than_the_new_code_is_refused_before_anything_changes
    server = versioned_server(0)
    program = supervised_by(server)
    File.unlink(server.path("another/#{PROGRAM}"))
    FileUtils.cp(File.expand_path("../../../lib/#{PROGRAM}", __dir__), server.path("another/#{PROGRAM}"))
    deploy_other_version(server)
    server.signal(:USR2)

    assert_first_version(server, program, "does not belong to Fairlead #{VERSION}")
  end

  def test_a_server_that_was_given_its_application_keeps_its_version
    rackup = Gem.bin_path(Gem::Specification.find_all_by_name("rackup").any? ? "rackup" : "rack", "rackup")
    arguments = ["-s", "fairlead", "-o", "127.0.0.1", "-p", 0, "-O", "workers=2"]
    server = own(Fairlead::Test::LaunchedBy.new(rackup, VERSIONED, *arguments, files: FILES.merge("version" => "1"), environment: variables(1)))
    File.symlink(Fairlead::Test::AnotherVersion.program, server.path("another/#{PROGRAM}"))
    server.start
    program = supervised_by(server)
    serving = wait_for_serving(server, 2)
    deploy_other_version(server)
    server.signal(:USR2)

    assert_first_version(server, program, "which is incompatible with the running version; stop the server and start it again")
    assert_equal serving, server.serving_pids
  end

  # Version of the state that the other program can read, and the end of the restart.
  { "takes_over" => [1, "done"], "gives_back" => [99, "failed"] }.each do |deed, (format, end_of_restart)|
    define_method(:"test_systemd_hears_of_one_restart_when_the_other_version_#{deed}") do
      with_notify_socket do |socket, path|
        server = versioned_server(2, format: format, environment: { "NOTIFY_SOCKET" => path })
        deploy_other_version(server)
        server.signal(:USR2)
        wait_until("the end of the restart", seconds: PATIENCE) { (server.stdout + server.stderr).include?("restart: #{end_of_restart}") }
        wait_until("readiness") { socket.events.last == "READY=1" && socket.events.size > 1 }

        assert_equal %w[READY=1 RELOADING=1 READY=1], socket.events
        assert_ends(server)
        assert_equal "STOPPING=1", socket.events.last
      end
    end
  end

  # The other program starts no spawner of the first version, which would have to read the certificates.
  def test_a_reload_of_certificates_that_waits_does_not_keep_the_other_version
    config = <<~RUBY
      bind "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem"
      before_worker_boot { (sleep 2; exit!(3)) if File.read("version").strip == "crashing" }
    RUBY
    server = versioned_server(1, config: config, bind: nil, files: certificate_files)
    program = supervised_by(server)
    spawner = server.spawner_pid
    deploy_other_version(server, "crashing")
    server.signal(:USR2)
    wait_for_line(server, /supervisor takes over/, seconds: PATIENCE)
    wait_until("the other program") { supervised_by(server) != program }
    Process.kill(:KILL, spawner)
    wait_for_line(server, /spawner of generation 1 is lost, another one starts if the restart fails/)
    server.signal(:HUP)
    wait_for_line(server, /restart: failed/, seconds: PATIENCE)
    File.unlink(server.path("other"))
    server.write("version", "1")
    wait_for_line(server, /certificates reloaded/, seconds: PATIENCE)

    assert_equal program, supervised_by(server)
    assert_ends(server)
  end

  def test_ctl_waits_for_a_restart_to_another_version
    server = versioned_server(2, config: CONTROL)
    deploy_other_version(server)

    assert_equal "restart: ok\n", said_by_ctl(server, "restart", "--wait")
    assert_other_version(server, workers: 2)
  end

  private

  # Starts a server. Its code of the version "crashing" ends before worker_settle_time has passed.
  def crashing(workers, files: {}, &block)
    config = <<~RUBY
      worker_settle_time 3
      crashing = File.read("version").strip == "crashing"
      before_worker_boot { exit!(3) if crashing }
    RUBY
    app = <<~RUBY + VERSIONED
      if File.read("version").strip == "crashing" && #{workers.zero?}
        Thread.new { sleep 1.5; exit!(3) }
      end
    RUBY
    versioned_server(workers, config: config, app: app, files: files, &block)
  end

  # Asserts that the server of the first version works: it can replace a process and restart.
  def assert_goes_on(server, workers, program)
    assert_replaces(server, server.serving_pids.first, count: [workers, 1].max) if workers.positive?
    File.unlink(server.path("other"))
    assert_restarts(server, "3")
    wait_for_line(server, /restart: done/, seconds: PATIENCE)

    assert_equal program, supervised_by(server)
    assert_ends(server)
  end

  def with_notify_socket
    Dir.mktmpdir("fairlead-test-") do |folder|
      path = "#{folder}/notify"
      socket = Fairlead::Test::NotifySocket.new(path)
      yield socket, path
    ensure
      socket&.close
    end
  end

  def assert_further_restarts(server, workers)
    server.write("version", "3")
    server.signal(:USR2)
    wait_until("another restart", seconds: PATIENCE) { server.stdout.scan("restart: done").size == 2 }

    assert_other_version(server, version: "3", workers: workers)
    assert_equal 1, server.stdout.scan("supervisor takes over").size
  end

  def said_by_ctl(server, *command)
    status, output, errors = ctl("-S", server.path("state"), *command)
    assert_equal 0, status, errors
    output
  end
end
