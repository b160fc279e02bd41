# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/control"
require "support/pausing"

# `fairlead ctl` and a real server: how it finds the server, its output, and its exit status.
class ToolTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled
  include Fairlead::Test::Pausing
  include Fairlead::Test::Folders

  APP = "run ->(env) { [200, {}, ['hello']] }"
  CONFIGURED = { "config/fairlead.rb" => "control_url 'tcp://127.0.0.1:0'\ncontrol_token 't'\nstate_path 'tmp/state'\npid_file 'tmp/pid'\n",
                 "tmp/.keep" => "" }.freeze

  # Runs `fairlead ctl` as a process in the folder of the server.
  def ctl_in_folder_of(server, *arguments)
    environment = { "RUBYLIB" => File.join(ROOT, "lib"), "RUBYOPT" => Fairlead::Test::ServerProcess::COMPILED }
    output, errors, status = Open3.capture3(environment, RbConfig.ruby, File.join(ROOT, "exe/fairlead"), "ctl", *arguments,
                                            chdir: server.directory)
    [status.exitstatus, output, errors]
  end

  def test_in_the_folder_of_the_server_its_configuration_says_where_it_is
    server = serve(APP, files: CONFIGURED)
    status, output, = ctl_in_folder_of(server, "status")

    assert_equal 0, status
    assert_match(/\Afairlead \S+ \(pid #{server.pid}\): ready, generation 1, running since .*\n/, output)
    assert_match(/^listening on #{server.addresses.first}\n(?:memory of the control group: .*\n)?0 requests/, output)
    assert_equal [0, "stop: ok\n", ""], ctl_in_folder_of(server, "stop", "-F", "config/fairlead.rb", "-e", "production")
    assert_equal 0, server.wait_exit.exitstatus
    assert_match(/the server is not running/, ctl_in_folder_of(server, "status")[2])
  end

  def test_the_arguments_of_pumactl_find_it
    server = serve(APP, "--pidfile", "server.pid", *FLAGS)
    state = state(server)
    [["-S", server.path(STATE)], ["--state", server.path(STATE)], ["-C", state["control_url"], "-T", TOKEN],
     ["--control-url", state["control_url"], "--control-token", TOKEN], ["-P", server.path("server.pid")], ["--pidfile", server.path("server.pid")],
     ["-p", server.pid], ["--pid", server.pid]].each do |arguments|
      assert_equal 0, ctl(*arguments, "status").first, arguments.inspect
      assert_equal 0, ctl("status", *arguments).first, arguments.inspect
    end
  end

  def test_status_shows_workers_and_a_failed_restart_with_its_reason
    server = serve(APP, "-w", "2", *FLAGS)
    server.write("config.ru", "raise 'no luck'")
    status, output, errors = ctl("-S", server.path(STATE), "--wait", "phased-restart")

    assert_equal [1, "", "fairlead ctl: the restart failed: "], [status, output, errors[/\A.*failed: /]]
    output = ctl("-S", server.path(STATE), "status")[1]

    assert_match(/^phased restart at \S+: failed\n  .*config\.ru:1: no luck/, output)
    assert_match(/^2 of 2 workers serve\nworker +pid +generation +state .*\n0 +\d+ +1 +serving +0 +0 +\d+ +0 +0\n1 /, output)
  end

  def test_json_is_what_the_control_server_says
    server = serve(APP, *FLAGS)

    assert_equal json(server, "stats").keys, JSON.parse(ctl("-S", server.path(STATE), "--json", "stats")[1]).keys
    assert_equal GC.stat.keys.map(&:to_s), JSON.parse(ctl("-S", server.path(STATE), "gc-stats", "--json")[1]).keys
    assert_equal({ "command" => "gc", "status" => "ok" }, JSON.parse(ctl("-S", server.path(STATE), "--json", "gc")[1]))
  end

  def test_people_get_lines
    server = serve(APP, *FLAGS)

    assert_match(/^requests_count +0$/, ctl("-S", server.path(STATE), "stats")[1])
    assert_match(/^count +\d+$/, ctl("-S", server.path(STATE), "gc-stats")[1])
    assert_equal [0, "", ""], ctl("-S", server.path(STATE), "-Q", "gc")
  end

  {
    "without_workers" => [[], /^--- pid \d+$/], "with_workers" => [["-w", "2"], /^--- worker 0, pid \d+$.*^--- worker 1, pid \d+$/m]
  }.each do |name, (flags, heads)|
    define_method(:"test_backtraces_say_which_request_each_thread_serves_#{name}") do
      server = serve("GO = File.expand_path('go')\nrun ->(env) { sleep 0.01 until File.exist?(GO); [200, {}, []] }", *flags, *FLAGS)
      client = connect(server).request("GET", "/slow?secret")
      output = wait_until("the request") { ctl("-S", server.path(STATE), "thread-backtraces")[1][%r{.*GET /slow\n  .*}m] }

      assert_match(heads, output)
      assert_match(%r{: GET /slow\n(?:  .*\n)*  .*config\.ru:2}, output)
      refute_includes output, "secret"
      server.write("go", "")
      client.answer
    end
  end

  def test_a_worker_that_does_not_answer_is_shown
    server = serve(APP, "-w", "2", *FLAGS)
    pid = json(server, "status")["worker_status"].first["pid"]
    pause_processes([pid])

    assert_match(/^--- worker 0, pid #{pid}: no answer$.*^--- worker 1, pid \d+$/m, ctl("-S", server.path(STATE), "thread-backtraces")[1])
  ensure
    resume_processes([pid])
  end

  def test_without_a_control_server_it_sends_signals
    server = serve(APP, "-w", "1", "--pidfile", "server.pid")
    where = ["-P", server.path("server.pid")]

    assert_equal [0, "running (pid #{server.pid}); it has no control server to ask more\n", ""], ctl(*where, "status")
    assert_equal [0, "worker-count-up: sent TTIN to #{server.pid}\n", ""], ctl(*where, "worker-count-up")
    server.wait_for_output(/changing to 2 workers/)
    assert_match(/stats needs the control server/, ctl(*where, "stats")[2])
    assert_equal 0, ctl(*where, "--wait", "stop").first
    assert_equal [1, "", "fairlead ctl: there is no server: the pid file #{server.path("server.pid")} cannot be read\n"], ctl(*where, "status")
  end

  def test_each_signal_is_that_of_pumactl
    signals = Fairlead::Control::Tool::COMMANDS.transform_values(&:first).compact.except("info")

    assert_equal({ "status" => 0, "restart" => "USR2", "phased-restart" => "USR1", "refork" => "URG", "stop" => "TERM", "halt" => "QUIT",
                   "reopen-log" => "HUP", "worker-count-up" => "TTIN", "worker-count-down" => "TTOU" }, signals)
  end

  def test_a_stale_state_file_is_named
    in_folder("state" => "---\npid: 4194305\ncontrol_url: tcp://127.0.0.1:1\n") do
      status, _, errors = ctl("-S", "state", "stop")

      assert_equal [1, "fairlead ctl: the server is not running (pid 4194305)\n"], [status, errors]
    end
    assert_match(/the state file nowhere does not exist/, ctl("-S", "nowhere", "status")[2])
  end

  def test_a_process_that_came_later_is_left_alone
    pid = Process.spawn("sleep", "60")
    in_folder("state" => "---\npid: #{pid}\n", "pid" => pid.to_s) do
      [%w[-S state], %w[-P pid]].each do |where|
        assert_equal 1, ctl(*where, "status").first
        assert_equal [1, "", "fairlead ctl: the server is not running (pid #{pid})\n"], ctl(*where, "stop")
      end
      assert_equal 0, ctl("-p", pid, "halt").first
    end
    assert_equal Signal.list["QUIT"], Process.wait2(pid).last.termsig
  end

  def test_a_wrong_token_is_named
    server = serve(APP, *FLAGS)

    assert_equal [1, "", "fairlead ctl: wrong or missing token (-T, or -S with the state file)\n"],
                 ctl("-C", state(server)["control_url"], "-T", "x", "stop")
  end

  { [] => "the command is missing", %w[dance] => "unknown command dance", %w[--nope status] => "invalid option: --nope",
    %w[-p x status] => "invalid argument: -p x", %w[-p 1 --wait gc] => "--wait is for" }.each do |arguments, text|
    define_method(:"test_#{arguments.join(" ").inspect}_is_a_mistake") do
      status, output, errors = ctl(*arguments)

      assert_equal [2, "", text], [status, output, errors[text]]
    end
  end

  def test_an_address_with_tls_is_none_of_a_control_server
    assert_equal [1, "", "fairlead ctl: ssl://127.0.0.1:1: a control server has no TLS; use tcp://… or unix://…\n"],
                 ctl("-C", "ssl://127.0.0.1:1", "-T", TOKEN, "stats")
  end

  def test_start_takes_the_arguments_of_the_server
    in_folder do
      output = StringIO.new
      errors = StringIO.new

      assert_equal 1, Fairlead::Control::Tool.run(%w[-F nowhere.rb start --check], output: output, errors: errors)
      assert_match(/nowhere\.rb: cannot be read/, errors.string)
    end
  end
end
