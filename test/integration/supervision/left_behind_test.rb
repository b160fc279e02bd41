# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/supervision"

# Processes, ports and commands that must not be left behind.
class LeftBehindTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  # /fork leaves a process that has copies of all descriptors and lives until it is killed.
  FORKING = <<~'RUBY'
    run lambda { |env|
      Process.detach(fork { Process.setsid; sleep }) if env["PATH_INFO"] == "/fork"
      [200, {}, ["1 #{Process.pid}"]]
    }
  RUBY

  # Keeps the GVL while it runs.
  KEEPING = <<~'RUBY'
    require "fiddle"
    KEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
  RUBY

  LOADS = {
    "sleeps" => "File.write('loading', ''); sleep\n",
    "keeps_the_lock_of_ruby" => "#{KEEPING}File.write('loading', ''); KEEP.call(100)\n"
  }.freeze

  ENDINGS = {
    "a_worker_that_is_ending" => ->(test, server) { test.hang_while_ending(server) },
    "a_worker_that_is_booting" => ->(test, server) { test.hang_while_booting(server) },
    "a_spawner_that_is_ending" => ->(test, server) { test.hang_spawner_while_ending(server) }
  }.freeze

  ENDINGS.each do |name, hang|
    define_method(:"test_usr2_forgets_nothing_of_#{name}") do
      server = supervised(2, config: "before_worker_boot { File.write('booting', Process.pid.to_s) && sleep if File.exist?('hang') }")
      hung = hang.call(self, server)
      server.write("version", "2")
      server.signal(:USR2)

      wait_until("the end of #{hung}", seconds: PATIENCE) { !Fairlead::Test::Processes.alive?(hung) }
      wait_for_version(server, "2")
      assert_ends(server)
    end
  end

  def hang_while_ending(server)
    victim = server.worker_pids.last
    Process.kill(:STOP, victim)
    server.signal(:TTOU)
    wait_for_line(server, /changing to 1 worker/)
    victim
  end

  def hang_while_booting(server)
    server.write("hang", "")
    Process.kill(:KILL, server.worker_pids.last)
    wait_until("a booting worker", seconds: PATIENCE) { File.size?(server.path("booting")) }
    File.unlink(server.path("hang"))
    Integer(File.read(server.path("booting")), 10).tap { |pid| Process.kill(:STOP, pid) }
  end

  def hang_spawner_while_ending(server)
    old = wait_until("the spawner") { server.spawner_pid }
    Process.kill(:STOP, old)
    server.write("version", "1b")
    server.signal(:USR1)
    wait_for_line(server, /phased restart: done/)
    old
  end

  SHAPES.each do |name, workers|
    LOADS.each do |doing, load|
      # With and without workers there is a process that loads new code.
      define_method(:"test_when_the_supervisor_is_killed_the_port_is_free_though_new_code_#{doing}_#{name}") do
        server = supervised(workers, app: "(#{load}) if File.read('version') == '2'\n#{VERSIONED}")
        server.write("version", "2")
        server.signal(:USR2)
        wait_until("the loading", seconds: PATIENCE) { File.exist?(server.path("loading")) }
        Process.kill(:KILL, server.pid)
        server.wait_exit

        assert_nothing_left(server)
      end
    end

    define_method(:"test_when_the_supervisor_is_killed_a_worker_that_keeps_the_lock_of_ruby_ends_#{name}") do
      server = supervised(workers, app: <<~RUBY)
        #{KEEPING}
        run ->(env) { env["PATH_INFO"] == "/keep" ? (File.write("kept", ""); KEEP.call(100)) : [200, {}, ["1 \#{Process.pid}"]] }
      RUBY
      client = adopt(TCPSocket.new("127.0.0.1", server.port)).request("GET", "/keep")
      wait_until("the request") { File.exist?(server.path("kept")) }
      Process.kill(:KILL, server.pid)
      server.wait_exit

      assert_nothing_left(server, seconds: 10)
      client.close
    end
  end

  # The first spawner is the supervisor's own child.
  def test_when_the_supervisor_is_killed_the_port_is_free_though_the_first_code_is_loaded
    LOADS.each_value do |load|
      server = prepared(2, app: load + VERSIONED, &:launch)
      wait_until("the loading") { File.exist?(server.path("loading")) }
      Process.kill(:KILL, server.pid)
      server.wait_exit

      wait_until("the end of all processes", seconds: PROMPT) { Fairlead::Test::Processes.group(server.pid).empty? }
    end
  end

  def test_when_the_supervisor_is_killed_a_spawner_that_hangs_in_a_hook_ends
    server = supervised(2, config: "before_worker_fork { File.write('forking', '') && sleep if File.exist?('hang') }")
    server.write("hang", "")
    Process.kill(:KILL, server.worker_pids.last)
    wait_until("the hook", seconds: PATIENCE) { File.exist?(server.path("forking")) }
    Process.kill(:KILL, server.pid)
    server.wait_exit

    assert_nothing_left(server, seconds: 10)
  end

  def test_when_the_supervisor_is_killed_the_last_hook_has_its_time
    server = supervised(2, config: "after_stopped { sleep 2; File.write('stopped', '') }")
    Process.kill(:KILL, server.pid)
    server.wait_exit

    wait_until("the hook") { File.exist?(server.path("stopped")) }
    assert_nothing_left(server)
  end

  # --- commands

  def test_every_signal_during_a_restart_is_acted_on_or_refused
    server = during_phased_restart
    %i[USR2 USR1].each { |signal| server.signal(signal) }
    server.write("version", "3")
    File.unlink(server.path("slow"))

    wait_for_version(server, "3", seconds: 25)
    wait_for_line(server, /hot restart: (?:done|failed|not now)/)
    wait_for_serving(server, 2, seconds: 25)
    assert_ends(server)
  end

  def test_every_command_during_a_restart_is_acted_on_or_refused_with_a_reason
    server = during_phased_restart(*FLAGS)
    outcomes = %w[phased-restart restart refork restart].map { |name| ctl("-S", server.path(STATE), name) }
    server.write("version", "3")
    File.unlink(server.path("slow"))

    outcomes.each { |status, _, errors| assert(status.zero? || !errors.strip.empty?, outcomes.inspect) }
    wait_for_version(server, "3", seconds: 25)
    wait_for_line(server, /hot restart: (?:done|failed)/, seconds: 25)
    refused = outcomes[2]
    assert_equal 1, refused.first, "a refork during a restart is refused"
    assert_match(/restart/, refused.last)
  end

  def test_a_refused_command_is_told_by_ctl
    server = supervised(1, *FLAGS)
    status, _, errors = ctl("-S", server.path(STATE), "worker-count-down")

    assert_equal 1, status
    assert_match(/last worker/, errors)
  end

  private

  # Slow enough to run commands during the replacement of its workers.
  def during_phased_restart(*flags)
    server = supervised(2, *flags, config: "before_worker_boot { sleep 1 if File.exist?('slow') }")
    server.write("slow", "")
    server.write("version", "2")
    server.signal(:USR1)
    wait_until("the first worker of the new code", seconds: PATIENCE) { server.worker_pids.size == 3 }
    server
  end

  # Processes that the application has forked.
  def child_processes(server)
    parents = Fairlead::Test::Processes.group(server.pid)
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      parents.include?(Integer(File.read("/proc/#{pid}/status")[/^PPid:\s+(\d+)/, 1], 10)) && Process.getsid(pid) == pid
    rescue SystemCallError
      false
    end
  end
end
