# frozen_string_literal: true

require "test_helper"
require "support/processes"

# Signals before the server has installed its handlers.
class EarlySignalsTest < Minitest::Test
  include Fairlead::Test::Servers

  APP = "run ->(env) { [200, {}, ['hello']] }"

  # Loaded before the command: sends the process a signal right before a file of Fairlead runs.
  AT_FILE = <<~'RUBY'
    command = Process.pid
    trace = TracePoint.new(:script_compiled) do |point|
      next unless point.instruction_sequence.path.end_with?(ENV.fetch("AT")) && (Process.pid == command || !ENV["OF_COMMAND"])

      trace.disable
      sleep(0.01) until File.exist?(ENV.fetch("AFTER", "."))
      Process.kill(ENV.fetch("SIGNAL"), Process.pid)
    end
    trace.enable
  RUBY

  # The same inside RubyGems, during its search for a file of Fairlead.
  IN_RUBYGEMS = <<~'RUBY'
    trace = TracePoint.new(:c_call) do |point|
      next unless point.path.include?("kernel_require") && caller.any? { |frame| frame.include?(ENV.fetch("AT")) }

      trace.disable
      Process.kill(ENV.fetch("SIGNAL"), Process.pid)
    end
    trace.enable
  RUBY

  %w[TERM INT].each do |signal|
    %w[options.rb spawner.rb native.rb].each do |file|
      define_method(:"test_#{signal}_while_#{file.delete_suffix(".rb")}_is_loaded_ends_the_command_without_a_backtrace") do
        assert_quiet_end(AT_FILE, signal, "lib/fairlead/#{file == "spawner.rb" ? "process/" : ""}#{file}")
      end
    end

    # The last file that the command loads.
    define_method(:"test_#{signal}_just_before_the_supervisor_replaces_the_command_is_not_lost") do
      assert_quiet_end(AT_FILE, signal, "json/ext.rb", "OF_COMMAND" => "yes")
    end

    define_method(:"test_#{signal}_inside_rubygems_ends_the_command_without_a_backtrace") do
      assert_quiet_end(IN_RUBYGEMS, signal, "lib/fairlead/options.rb")
    end
  end

  def test_a_second_signal_kills_a_first_process_that_does_not_end
    environment = { "RUBYOPT" => "-I. -rhook", "AT" => "json/ext.rb", "SIGNAL" => "TERM", "OF_COMMAND" => "yes", "AFTER" => "loading" }
    hangs = "trap('TERM') { File.write('asked', '') }; File.write('loading', ''); sleep"
    server = launch(hangs, "-w", 1, "--preload", files: { "hook.rb" => AT_FILE }, environment: environment)
    wait_until("the first signal to arrive") { File.exist?(server.path("asked")) }
    server.signal(:TERM)

    assert_equal 143, server.wait_exit.exitstatus
    wait_until("the end of all processes") { Fairlead::Test::Processes.group(server.pid).empty? }
  end

  def test_a_signal_while_the_application_is_loaded_ends_it_and_removes_the_pid_file
    server = launch("at_exit { puts 'tidied' }\nFile.write('loading', '')\nsleep 30\n#{APP}", "--pidfile", "server.pid")
    wait_until("the application to be loaded") { File.exist?(server.path("loading")) }
    server.signal(:TERM)

    assert_equal 143, server.wait_exit.exitstatus
    assert_includes server.stdout, "tidied"
    refute_path_exists server.path("server.pid")
  end

  # The spawner ends by the same signal, perhaps before the supervisor.
  def test_a_signal_for_all_processes_while_the_application_is_loaded_has_the_usual_status
    statuses = Array.new(8) do
      server = launch("File.write('loading', '')\nsleep 30\n#{APP}", "-w", 1, "--preload")
      wait_until("the application to be loaded") { File.exist?(server.path("loading")) }
      Process.kill(:TERM, -server.pid)
      server.wait_exit.exitstatus
    end

    assert_equal [143], statuses.uniq
  end

  def test_addresses_are_logged_when_there_is_an_application_to_serve_them
    [[], ["-w", 1], ["-w", 1, "--preload"]].each do |processes|
      server = serve("puts 'loading'\n#{APP}", *processes)

      assert_match(/^loading\n(?:.*\n)*.*listening on .*\n.*fairlead \S+ ready/, server.stdout)
    end
  end

  private

  def assert_quiet_end(hook, signal, file, more = {})
    environment = { "RUBYOPT" => "-I. -rhook", "AT" => file, "SIGNAL" => signal, **more }
    server = launch(APP, files: { "hook.rb" => hook }, environment: environment)
    status = server.wait_exit

    assert_includes [[128 + Signal.list.fetch(signal), nil], [0, nil]], [status.exitstatus, status.termsig], server.log
    assert_empty server.stderr
  end
end
