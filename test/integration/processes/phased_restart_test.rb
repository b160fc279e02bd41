# frozen_string_literal: true

require "test_helper"
require "support/restarts"

# USR1: workers with the new code replace the workers one at a time.
class PhasedRestartTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  [["--preload"], ["--no-preload"]].each do |flags|
    define_method(:"test_new_code_serves_and_no_request_fails_with_#{flags.first}") do
      server = versioned("-w", 2, "-t", 2, *flags)
      before = [server.pid, *server.worker_pids]
      failures = under_load(server) do
        2.upto(4) do |number|
          server.write("version", number.to_s)
          server.signal(:USR1)
          restarted(server, times: number - 1)
          assert_equal number.to_s, version(server)
        end
      end

      assert_empty failures
      assert_equal [server.pid], before & [server.pid, *server.worker_pids]
      assert_empty server.stderr
    end
  end

  %w[--preload --no-preload].each do |flag|
    define_method(:"test_broken_code_leaves_the_old_workers_with_#{flag}") do
      server = versioned("-w", 2, flag)
      before = server.worker_pids
      server.write("version", "broken")
      server.signal(:USR1)
      server.wait_for_output(/phased restart: failed, generation 1 goes on serving: .*config.ru:2: this code is broken/)

      wait_until("the end of the broken worker") { server.worker_pids == before }
      assert_equal "1", version(server)
      server.write("version", "2")
      server.signal(:USR1)
      restarted(server)
      assert_equal "2", version(server)
    end
  end

  def test_code_that_fails_in_the_second_worker_is_taken_back
    app = <<~'RUBY'
      VERSION = File.read("version").strip
      raise "no second one" if VERSION == "2" && File.exist?("first")

      File.write("first", "") if VERSION == "2"
      run ->(_env) { [200, {}, ["#{VERSION} #{Process.pid}"]] }
    RUBY
    server = versioned("-w", 2, "--no-preload", app: app)
    server.write("version", "2")
    failures = under_load(server) do
      server.signal(:USR1)
      server.wait_for_output(/failed, generation 1 goes on serving/)
      server.write("version", "1")
      wait_until("only the old code") { server.worker_pids.size == 2 && Array.new(8) { version(server) }.uniq == ["1"] }
    end

    assert_empty failures
  end

  def test_code_that_hangs_while_it_is_loaded_gives_way_to_the_next_one
    app = "sleep if File.read('version') == 'slow'\n#{VERSIONED}"
    server = versioned("-w", 1, "--preload", app: app)
    server.write("version", "slow")
    server.signal(:USR1)
    server.wait_for_output(/loading the new code \(generation 2\)/)
    server.write("version", "3")
    server.signal(:USR1)
    restarted(server)

    assert_equal "3", version(server)
    wait_until("the end of the hanging one") { server.children(/spawner/).size == 1 }
  end

  def test_the_other_workers_go_on_when_one_is_killed_meanwhile
    server = versioned("-w", 3, "--preload")
    server.write("version", "2")
    server.signal(:USR1)
    Process.kill(:KILL, server.worker_pids.last)
    restarted(server)

    wait_until("three workers") { server.worker_pids.size == 3 && server.children(/generation 1/).empty? }
    assert_equal ["2"], Array.new(8) { version(server) }.uniq
  end

  def test_a_request_that_runs_is_finished_by_the_old_worker
    app = <<~RUBY
      VERSION = File.read("version").strip
      run lambda { |env|
        next [200, {}, [VERSION]] unless env["PATH_INFO"] == "/slow"

        File.write("inside", "")
        sleep 0.01 until File.exist?("go")
        [200, {}, ["slow \#{VERSION}"]]
      }
    RUBY
    server = versioned("-w", 1, app: app)
    slow = Thread.new { Net::HTTP.get(URI(server.url("/slow"))) }
    wait_until("the request") { File.exist?(server.path("inside")) }
    server.write("version", "2")
    server.signal(:USR1)
    wait_until("the new code") { version(server) == "2" }
    server.write("go", "")

    assert_equal "slow 1", slow.value
    restarted(server)
  end

  # Like a deployment with Capistrano: `current` points to a release, and its configuration file and hooks are read again.
  def test_a_link_to_a_release_is_followed
    file = "threads 1, 1\nbefore_worker_boot { File.write('../../booted', File.read('version') + \"\\n\", mode: 'a') }"
    releases = %w[1 2].flat_map do |name|
      [["releases/#{name}/config.ru", VERSIONED], ["releases/#{name}/version", name], ["releases/#{name}/config/fairlead.rb", file]]
    end
    server = own(Fairlead::Test::ServerProcess.new(nil, "-w", "1", "--dir", "current", files: releases.to_h))
    File.symlink("releases/1", server.path("current"))
    server.start
    File.symlink("releases/2", server.path("next"))
    File.rename(server.path("next"), server.path("current"))
    server.signal(:USR1)
    restarted(server)

    assert_equal "2", version(server)
    assert_equal %w[1 2], File.readlines(server.path("booted"), chomp: true)
  end

  def test_a_second_request_is_done_after_the_first
    file = "before_worker_boot { sleep 0.01 until File.exist?('go') }"
    server = versioned("-w", 2, "--preload", files: { "config/fairlead.rb" => file, "go" => "" })
    File.unlink(server.path("go"))
    server.signal(:USR1)
    wait_until("the first new worker") { server.worker_pids.size == 3 }
    server.signal(:USR1)
    server.write("go", "")

    restarted(server, times: 2)
  end

  def test_messages_reach_old_and_new_workers
    app = <<~'RUBY'
      Fairlead.subscribe("news") { |_, message| File.write("heard-#{Process.pid}", message) }
      run ->(env) { [200, {}, [Fairlead.publish("news", env["QUERY_STRING"]).to_s]] }
    RUBY
    file = "before_worker_boot { |index| sleep 0.01 until index.zero? || File.exist?('go') }"
    server = versioned("-w", 2, "--preload", app: app, files: { "config/fairlead.rb" => file, "go" => "" })
    File.unlink(server.path("go"))
    old = server.worker_pids.last
    server.signal(:USR1)
    new = wait_until("an old worker, a new one and an unready one") { halfway(server, old) }
    Net::HTTP.get(URI(server.url("/?hello")))

    [old, new].each { |pid| wait_until("the message") { heard(server, pid) == "hello" } }
    server.write("go", "")
    restarted(server)
  end

  private

  # Id of the new worker that serves already, once the other one of its generation has been forked.
  def halfway(server, old)
    booted = server.stdout.scan(/worker 0 booted \(pid (\d+)/).flatten
    Integer(booted.last, 10) if booted.size == 2 && server.worker_pids.size == 3 && server.worker_pids.first == old
  end

  def heard(server, pid)
    path = server.path("heard-#{pid}")
    File.read(path) if File.exist?(path)
  end
end
