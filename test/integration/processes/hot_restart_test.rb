# frozen_string_literal: true

require "test_helper"
require "support/restarts"

# USR2: the server's program starts again with the open listeners.
class HotRestartTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  def test_with_workers_no_request_fails_and_everything_is_new
    server = versioned("-w", 2, "-t", 2)
    port = server.port
    before = server.worker_pids
    failures = under_load(server) do
      2.upto(4) do |number|
        server.write("version", number.to_s)
        server.signal(:USR2)
        restarted(server, "hot restart", times: number - 1)
      end
    end

    assert_empty failures
    assert_equal ["4", [port], []], [version(server), server.ports.uniq, before & server.worker_pids]
    assert_equal 0, server.stop.exitstatus
    assert_empty server.stderr
  end

  def test_without_workers_clients_wait_in_the_backlog
    server = versioned
    failures = under_load(server) do
      2.upto(4) do |number|
        server.write("version", number.to_s)
        server.signal(:USR2)
        restarted(server, "hot restart", times: number - 1)
      end
    end

    assert_empty failures
    assert_equal "4 #{server.serving_pids.first}", answer(server)
    assert_equal 0, server.stop.exitstatus
  end

  # The spawner waits, for example, for a disk that hangs, and ignores the request to end.
  def test_it_takes_the_place_of_a_phased_restart_that_hangs
    hanging = "(trap('TERM', 'IGNORE'); File.write('hung', Process.pid); sleep) if File.exist?('hang')\n"
    server = versioned("-w", 2, "--preload", "--worker-boot-timeout", 1, app: hanging + VERSIONED)
    server.write("hang", "")
    server.signal(:USR1)
    wait_until("the spawner", seconds: 20) { File.size?(server.path("hung")) }
    hung = File.read(server.path("hung"))
    server.wait_for_output(/the spawner of generation 2 \(pid #{hung}\) is not ready after 1 s/)
    File.unlink(server.path("hang"))
    server.write("version", "2")
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal "2", version(server)
    wait_until("the end of the hanging spawner") { !File.exist?("/proc/#{hung}") }
    assert_match(/hot restart: replaces the phased restart/, server.stdout)
  end

  # Like a deployment with Capistrano: `current` leads to the new release, and the old one is gone.
  def test_a_restart_after_the_old_release_was_deleted_brings_in_the_new_one
    releases = [1, 2].to_h { |number| ["releases/#{number}/config.ru", "run ->(_env) { [200, {}, ['#{number}']] }"] }
    [[], ["-w", 1]].each do |processes|
      server = own(Fairlead::Test::ServerProcess.new(nil, "--dir", "current", *processes, files: releases))
      File.symlink("releases/1", server.path("current"))
      server.start
      File.symlink("releases/2", server.path("next"))
      File.rename(server.path("next"), server.path("current"))
      FileUtils.rm_r(server.path("releases/1"))
      server.signal(:USR2)

      wait_until("the new release") { version(server) == "2" }
      assert_equal 0, server.stop.exitstatus
    end
  end

  def test_without_workers_a_phased_restart_is_a_hot_one
    server = versioned
    server.write("version", "2")
    server.signal(:USR1)

    restarted(server, "hot restart")
    assert_equal "2", version(server)
  end

  [[], ["-w", 2]].each do |flags|
    define_method(:"test_a_configuration_that_is_wrong_changes_nothing_#{flags.join}") do
      server = versioned(*flags)
      server.write("config/fairlead.rb", "max_threads 0\n")
      server.signal(:USR2)
      server.wait_for_output(/hot restart: failed, generation 1 goes on serving: .*max_threads/)

      assert_equal "1", version(server)
    end
  end

  def test_an_application_that_cannot_be_loaded_leaves_the_old_workers
    server = versioned("-w", 2)
    before = server.worker_pids
    server.write("version", "broken")
    server.signal(:USR2)
    server.wait_for_output(/hot restart: failed, generation 1 goes on serving: .*this code is broken/)

    assert_equal ["1", before], [version(server), server.worker_pids]
    Process.kill(:KILL, before.first)
    wait_until("a worker of the old code, from its spawner") { (server.worker_pids - before).any? && server.worker_pids.size == 2 }
    assert_equal "1", version(server)
  end

  def test_the_number_of_workers_and_the_options_are_those_of_the_new_file
    server = versioned(files: { "config/fairlead.rb" => "workers 1" })
    server.write("config/fairlead.rb", "workers 3; preload false; environment 'staging'")
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal 3, server.wait_for_workers(3).size
  end

  def test_a_unix_socket_stays_and_is_removed_at_the_end
    server = versioned("-w", 1, bind: "unix://app.sock")
    inode = File.stat(server.path("app.sock")).ino
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal inode, File.stat(server.path("app.sock")).ino
    assert_equal 0, server.stop.exitstatus
    refute_path_exists server.path("app.sock")
  end

  def test_the_hook_runs_before_and_the_pid_file_stays
    server = versioned("-w", 1, "--pid-file", "pid", files: { "config/fairlead.rb" => "before_restart { File.write('hook', Process.pid.to_s) }" })
    spawner = server.spawner_pid
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal [spawner.to_s, "#{server.pid}\n"], [File.read(server.path("hook")), File.read(server.path("pid"))]
  end

  def test_another_command_may_be_given
    server = versioned("-w", 1, files: { "again.sh" => "FROM_SCRIPT=yes exec \"$@\"", "config/fairlead.rb" => <<~RUBY })
      restart_command ["sh", "again.sh", #{RbConfig.ruby.inspect}, *File.read("/proc/self/cmdline").split("\\0").drop(1)].map { |word| word.gsub(" ", "\\\\ ") }.join(" ") unless ENV["FROM_SCRIPT"]
      before_worker_boot { File.write("from", ENV["FROM_SCRIPT"].to_s) }
    RUBY
    server.signal(:USR2)
    restarted(server, "hot restart")

    assert_equal "yes", File.read(server.path("from"))
  end

  # Loaded before the command, in the new program.
  SLOW_START = <<~'RUBY'
    if ENV["FAIRLEAD_SPAWNER"]
      File.write("executed", "")
      sleep 0.01 until File.exist?("go")
    end
  RUBY
  SLOW_LOAD = <<~'RUBY'
    if File.exist?("executed")
      File.write("loading", "")
      sleep 0.01 until File.exist?("loaded")
    end
  RUBY

  [[], ["-w", 1]].each do |flags|
    # The signal would end a program without a handler.
    define_method(:"test_a_hangup_while_the_new_program_starts_ends_nothing_and_is_acted_on#{flags.join}") do
      server = versioned(*flags, "--access-log", "access.log", app: SLOW_LOAD + VERSIONED, files: { "slow.rb" => SLOW_START },
                                                               environment: { "RUBYOPT" => "-r./slow" })
      server.signal(:USR2)
      { "executed" => "go", "loading" => "loaded" }.each do |reached, go_on|
        wait_until(reached) { File.exist?(server.path(reached)) }
        server.signal(:HUP)
        server.write(go_on, "")
      end
      server.wait_for_output(/reopened/)

      assert_equal "1", version(server)
      assert_equal 0, server.stop.exitstatus
    end
  end

  # The old program changes the handling of HUP until the new one has started. The new one must not take that for nohup, nor
  # ignore a real nohup.
  def test_a_hangup_after_the_restart_means_what_it_meant_before
    { "IGNORE" => "1", "DEFAULT" => nil }.each do |handler, expected|
      server = with_hangup(handler) { versioned }
      server.signal(:USR2)
      restarted(server, "hot restart")
      server.signal(:HUP)

      expected ? assert_equal([expected] * 3, Array.new(3) { version(server) }) : assert_equal(0, server.wait_exit.exitstatus)
    end
  end

  private

  # The processes that the block starts inherit the handler.
  def with_hangup(handler)
    previous = trap("HUP", handler)
    yield
  ensure
    trap("HUP", previous || "DEFAULT")
  end
end
