# frozen_string_literal: true

require "test_helper"

# While bin/setup installs packages, a policy keeps Debian from starting their services. The policy must not stay.
class SetupServicesTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  SCRIPT = <<~'BASH'
    set -euo pipefail
    source "$1/bin/support/shell.bash"
    source "$1/bin/support/services.bash"
    as_root() { "$@"; }
    services_policy=$PWD/policy
    status=0
    without_starting_services "${@:2}" || status=$?
    echo "went on with $status" >went-on
    exit "$status"
  BASH

  # Starts the command in a process group of its own.
  def start(*command)
    File.write("script", SCRIPT)
    Process.spawn("bash", "script", ROOT, *command, pgroup: true, err: File::NULL)
  end

  def status_of(*command) = Process.wait2(start(*command)).last.exitstatus

  def test_it_is_there_during_the_command_and_gone_afterwards
    in_folder do
      assert_equal 0, status_of("sh", "-c", "./policy; test $? = 101")
      refute_path_exists "policy"
      assert_equal 7, status_of("sh", "-c", "exit 7")
      refute_path_exists "policy"
      assert_equal "went on with 7\n", File.read("went-on")
    end
  end

  %i[INT TERM HUP].each do |signal|
    define_method(:"test_it_is_gone_after_an_interruption_by_#{signal}") do
      in_folder do
        pid = start("sh", "-c", "touch begun; exec sleep 60")
        wait_until("the command") { File.exist?("begun") }
        assert_path_exists "policy"
        Process.kill(signal, -pid)

        refute_predicate Process.wait2(pid).last, :success?
        wait_until("the end of the policy") { !File.exist?("policy") }
      end
    end
  end

  def test_one_that_a_killed_run_has_left_behind_goes_too
    in_folder do
      pid = start("sh", "-c", "touch begun; exec sleep 60")
      wait_until("the command") { File.exist?("begun") }
      Process.kill(:KILL, -pid)
      Process.wait(pid)

      assert_path_exists "policy"
      status_of("true")
      refute_path_exists "policy"
    end
  end

  def test_the_policy_of_the_machine_stays
    in_folder("policy" => "#!/bin/sh\nexit 101\n") do
      status_of("true")

      assert_equal "#!/bin/sh\nexit 101\n", File.read("policy")
    end
  end
end
