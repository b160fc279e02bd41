# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/control"
require "support/supervision"

# Spawners and workers that hang in each of their states.
class HangsTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  BOOT = "before_worker_boot { File.write('booting', Process.pid.to_s) && sleep if File.exist?('hang') }\n"
  LOAD = "(File.write('loading', Process.pid.to_s); sleep) if File.exist?('hang')\n"

  %i[USR1 USR2].each do |signal|
    kind = signal == :USR1 ? "phased restart" : "hot restart"

    define_method(:"test_new_workers_that_hang_in_boot_fail_the_#{kind.tr(" ", "_")}") do
      server = supervised(2, config: BOOT)
      serving = server.worker_pids
      server.write("hang", "")
      server.write("version", "2")
      server.signal(signal)
      wait_for_line(server, /#{kind}: failed, generation 1 goes on serving/, seconds: 25)
      wait_until("only the old workers", seconds: PATIENCE) { server.worker_pids.size == 2 && reply(server)&.first == "1" }
      refute_empty serving & server.worker_pids, "a serving worker is not ended because another one hangs"
      File.unlink(server.path("hang"))

      assert_restarts(server, "3", signal: signal)
    end

    define_method(:"test_code_that_never_finishes_loading_fails_the_#{kind.tr(" ", "_")}") do
      server = supervised(2, "--preload", app: LOAD + VERSIONED)
      serving = server.worker_pids
      server.write("hang", "")
      server.signal(signal)
      wait_until("the loading") { File.size?(server.path("loading")) }
      wait_for_line(server, /#{kind}: failed, .* goes on serving/)

      assert_equal serving, server.worker_pids
      wait_until("the end of the spawner") { !Fairlead::Test::Processes.alive?(Integer(File.read(server.path("loading")), 10)) }
      File.unlink(server.path("hang"))
      assert_restarts(server, signal: signal)
    end
  end

  def test_without_workers_code_that_never_finishes_loading_leaves_the_old_process
    server = supervised(0, app: LOAD + VERSIONED)
    server.write("hang", "")
    server.signal(:USR2)
    wait_until("the loading") { File.size?(server.path("loading")) }

    assert_equal "1", reply(server)&.first, "the old process serves meanwhile"
    wait_for_line(server, /hot restart: failed, .* goes on serving/)
    File.unlink(server.path("hang"))
    assert_restarts(server)
  end

  def test_a_start_whose_application_never_finishes_loading_ends
    server = prepared(1, "--preload", app: "sleep", &:launch)

    refute_equal 0, server.wait_exit(seconds: PATIENCE).exitstatus
    wait_until("the end of all", seconds: PROMPT) { Fairlead::Test::Processes.group(server.pid).empty? }
  end

  def test_a_ready_spawner_that_hangs_is_replaced
    server = supervised(2)
    wait_until("the spawner") { server.spawner_pid }
    before = Fairlead::Test::Processes.descriptors(server.pid)
    workers = server.worker_pids
    hung = server.spawner_pid
    Process.kill(:STOP, hung)
    Process.kill(:KILL, workers.first)
    wait_until("another spawner", seconds: PATIENCE) { ![nil, hung].include?(server.spawner_pid) }
    wait_for_serving(server, 2)

    refute Fairlead::Test::Processes.alive?(hung)
    assert_includes server.worker_pids, workers.last
    Fairlead::Test::Processes.wait_for_closed_descriptors(server.pid, before)
    assert_restarts(server)
  end

  def test_a_sole_process_that_hangs_is_replaced
    server = supervised(0)
    hung = reply(server).last
    refute_equal server.pid, hung, "the application is not in the supervisor"
    Process.kill(:STOP, hung)
    wait_until("another process", seconds: PATIENCE) { reply(server, seconds: 0.5)&.last.then { |pid| pid && pid != hung } }

    wait_until("its end") { !Fairlead::Test::Processes.alive?(hung) }
    assert_ends(server)
  end

  def test_a_sole_process_that_is_killed_is_replaced
    server = supervised(0)
    killed = reply(server).last
    Process.kill(:KILL, killed)

    wait_until("another process", seconds: PATIENCE) { reply(server)&.last.then { |pid| pid && pid != killed } }
    assert_predicate server, :running?
  end

  SHAPES.each do |name, workers|
    define_method(:"test_control_and_health_answer_while_every_other_process_is_stopped_#{name}") do
      server = supervised(workers, *FLAGS, config: "worker_timeout 60")
      processes = Fairlead::Test::Processes.group(server.pid) - [server.pid]
      processes.each { |pid| Process.kill(:STOP, pid) }

      refute_empty processes, "the application is not in the supervisor"
      %w[status stats].each { |what| assert_equal 200, command(server, what).status }
      assert_equal 200, control(server, "/live").status
    end

    define_method(:"test_a_password_command_that_does_not_end_holds_up_nothing_#{name}") do
      server = with_encrypted_key(workers)
      server.write("hang", "")
      renew(server)
      server.signal(:HUP)
      wait_until("the command to hang") { File.exist?(server.path("hung")) }
      worker = server.serving_pids.first
      Process.kill(:KILL, worker) if workers.positive?
      wait_until("another worker", seconds: 8) { server.worker_pids.size == workers && !server.worker_pids.include?(worker) }

      server.signal(:TERM)
      wait_until("the end", seconds: PROMPT) { server.exited? }
      assert_equal 0, server.status.exitstatus
      wait_until("the end of all", seconds: PROMPT) { Fairlead::Test::Processes.group(server.pid).empty? }
    end

    # The new program runs the password command, too.
    %i[USR1 USR2].each do |signal|
      define_method(:"test_a_password_command_that_hangs_in_#{signal}_delays_no_term_#{name}") do
        server = with_encrypted_key(workers)
        server.write("hang", "")
        server.signal(signal)
        wait_until("the command to hang") { File.exist?(server.path("hung")) }

        server.signal(:TERM)
        wait_until("the end", seconds: PROMPT) { server.exited? }
        assert_equal 0, server.status.exitstatus
        wait_until("the end of all", seconds: PROMPT) { Fairlead::Test::Processes.group(server.pid).empty? }
      end
    end
  end

  private

  def with_encrypted_key(workers)
    pair = Fairlead::Test::Authority.usual.server("localhost")
    files = {
      "password.sh" => "test -e hang && echo $$ > hung && exec sleep 100\necho secret\n",
      "key.pem" => encrypted(pair), "cert.pem" => pair.pem,
      "config/fairlead.rb" => "#{QUICK}watch_certificates 0\nbind 'ssl://127.0.0.1:0?cert=cert.pem&key=key.pem&key_password_command=sh+password.sh'\n"
    }
    prepared(workers, files: files) { |server| File.chmod(0o600, server.path("key.pem")) }.start
  end

  def renew(server)
    pair = Fairlead::Test::Authority.usual.server("localhost", number: 1)
    server.write("cert.pem", pair.pem)
    server.write("key.pem", encrypted(pair))
  end

  def encrypted(pair) = pair.key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "secret")
end
