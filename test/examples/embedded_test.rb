# frozen_string_literal: true

require "test_helper"
require "json"
require "logger"
require "stringio"
require "support/http_client"
require "support/launched_by"
require "support/processes"
require_relative "../../examples/embedded/launcher"

# The program of examples/embedded, and its launcher in this process.
class EmbeddedTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  SETTINGS = "hosts: ['127.0.0.1']\nhttp_port: 0\nadmin_port: 0\nthreads: 3\n"
  TIMES = 50

  def teardown
    @launcher&.stop(0)
    super
  end

  def test_two_listeners_share_one_process
    program = start_program
    public_port, admin_port = program.ports

    assert_equal ["You are visitor 1\n", "You are visitor 2\n"], Array.new(2) { body(public_port) }
    assert_equal({ "visitors" => 2 }, JSON.parse(body(admin_port)))
    assert_equal "visitors/1.0", adopt(TCPSocket.new("127.0.0.1", public_port)).get["server"]
    assert_match(%r{^INFO: GET /: 200 in \d+\.\d ms$}, program.stdout)
    assert_empty program.stderr
  end

  def test_its_signals_are_its_own
    %i[TERM INT].each do |signal|
      program = start_program

      assert_equal 0, program.stop(signal).exitstatus
      assert_includes program.stdout, "INFO: ended by #{signal}\n"
    end
  end

  def test_hup_reads_the_settings_and_starts_the_servers_again
    program = start_program
    body(program.ports.first)
    program.write("settings.yml", SETTINGS.sub("admin_port: 0", "admin_port:"))
    program.signal(:HUP)
    wait_until("the second start") { program.stdout.scan("launched on").size == 2 }

    assert_equal "You are visitor 2\n", body(program.ports.last)
    assert_includes program.stdout, "INFO: launched on 1 sockets\n"
    assert_equal 0, program.stop.exitstatus
  end

  def test_usr1_and_ttin_are_the_programs_too
    program = start_program("log_file: program.log\n")
    File.rename(program.path("program.log"), program.path("program.log.1"))
    program.signal(:USR1)
    wait_until("the new log") { File.exist?(program.path("program.log")) }
    program.signal(:TTIN)

    wait_until("the backtraces") { File.read(program.path("program.log")).match?(/program\.rb:\d+:in .*act_on/) }
    assert_equal 0, program.stop.exitstatus
  end

  def test_a_port_that_is_taken_ends_the_program_with_a_message
    taken = TCPServer.new("127.0.0.1", 0)
    program = launch_program("admin_port: #{taken.addr[1]}\n")

    assert_equal 1, program.wait_exit.exitstatus
    assert_includes program.stdout, "ERROR: cannot listen on tcp://127.0.0.1:#{taken.addr[1]}: the address is in use\n"
  ensure
    taken&.close
  end

  def test_fifty_stops_and_starts_leave_no_thread_and_no_descriptor_behind
    launcher = launcher()
    start_and_stop(launcher)
    before = counts
    TIMES.times { start_and_stop(launcher) }

    wait_until("the counts from before: #{before}") do
      GC.start
      counts.zip(before).all? { |now, earlier| now <= earlier }
    end
  end

  def test_the_callback_comes_once_both_listeners_serve
    bodies = nil
    @launcher = launcher.start { |running| bodies = running.ports.map { |port| body(port) } }

    assert_equal ["You are visitor 1\n", '{"visitors":1}'], bodies
  end

  private

  def launcher(log = StringIO.new)
    Launcher.new({ "hosts" => ["127.0.0.1"], "http_port" => 0, "admin_port" => 0, "threads" => 3 }, Logger.new(log))
  end

  def start_and_stop(launcher)
    launcher.start
    assert_equal(%w[You {"vi], launcher.ports.map { |port| body(port)[0, 4].strip })
    launcher.stop
  end

  # Number of Ruby threads, native threads and descriptors.
  def counts = [Thread.list.size, Dir.children("/proc/self/task").size, descriptors(Process.pid)]

  def body(port)
    client = adopt(TCPSocket.new("127.0.0.1", port))
    client.get.body
  ensure
    client&.close
  end

  # If a key has two values, the last one counts.
  def launch_program(more = "")
    path = File.join(ROOT, "examples/embedded/program.rb")
    own(Fairlead::Test::LaunchedBy.new(path, nil, "settings.yml", files: { "settings.yml" => SETTINGS + more })).launch
  end

  def start_program(more = "")
    program = launch_program(more)
    log = more[/program\.log/] || "stdout.log"
    wait_until("the start") { File.exist?(program.path(log)) && File.read(program.path(log)).include?("launched on") }
    program
  end
end
