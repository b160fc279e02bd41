# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# USR2 with a configuration that is well-formed but unusable now: the running server continues and logs the reason.
class HotRestartRefusalsTest < Minitest::Test
  include Fairlead::Test::Supervision

  # Name of a case => configuration and reason. PORT is taken, and taken.pid has the id of a running process.
  CASES = {
    "an_address_in_use" => [%(bind "tcp://127.0.0.1:PORT"), /address is in use/],
    "no_folder_for_a_unix_socket" => [%(bind "unix://missing/app.sock"), %r{missing}],
    "no_folder_for_the_pid_file" => [%(pid_file "missing/pid"), %r{missing}],
    "no_folder_for_the_state_file" => [%(state_path "missing/state"; control_url "auto"), %r{missing}],
    "no_folder_for_the_access_log" => [%(access_log "missing/access.log"), %r{missing}],
    "no_folder_for_standard_output" => [%(redirect_stdout "missing/out.log"), %r{missing}],
    "a_folder_as_access_log" => [%(access_log "config"), /config/],
    "a_folder_as_standard_error" => [%(redirect_stderr "config"), /config/],
    "a_control_address_in_use" => [%(control_url "tcp://127.0.0.1:PORT"), /address is in use/],
    "a_health_address_in_use" => [%(health_url "tcp://127.0.0.1:PORT"), /address is in use/],
    "a_pid_file_of_another_process" => [%(pid_file "taken.pid"), /process \d+ is running/]
  }.freeze

  def setup
    @taken = TCPServer.new("127.0.0.1", 0)
  end

  def teardown
    @taken.close
  end

  SHAPES.each do |name, workers|
    CASES.each do |fault, (config, reason)|
      define_method(:"test_#{fault}_changes_nothing_#{name}") do
        server = supervised(workers, files: { "taken.pid" => "#{Process.pid}\n" })
        serving = server.serving_pids
        server.write("version", "2")
        configure(server, config.sub("PORT", @taken.local_address.ip_port.to_s))
        server.signal(:USR2)

        assert_refused(server, reason, serving)
      end
    end

    define_method(:"test_a_restart_after_one_that_was_refused_brings_in_the_new_code_#{name}") do
      server = supervised(workers)
      serving = server.serving_pids
      configure(server, %(bind "tcp://127.0.0.1:#{@taken.local_address.ip_port}"))
      server.signal(:USR2)
      assert_refused(server, /address is in use/, serving)
      configure(server, "")

      assert_restarts(server)
      assert_ends(server)
    end
  end
end
