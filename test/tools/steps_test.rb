# frozen_string_literal: true

require "test_helper"
require "open3"

# The steps of bin/test and .ci/run: their timeouts, and the lines about them.
class StepsTest < Minitest::Test
  include Fairlead::Test::Folders

  # Compiles for two seconds, once.
  CARGO = <<~'SH'
    #!/bin/sh
    if ! [ -e built ]; then sleep 2; touch built; fi
    case "$*" in
      *--no-run*) ;;
      *) printf 'one: 3 interleavings\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n' ;;
    esac
  SH

  # Runs a script with the functions of steps.bash: [output, true if it has passed].
  def steps(script, seconds: 20)
    File.write("script", "set -euo pipefail\nsource #{ROOT}/bin/support/shell.bash\nsource #{ROOT}/bin/support/steps.bash\n#{script}\nfinish\n")
    output, status = Open3.capture2e({ "CARGO_TARGET_DIR" => Dir.pwd, "FAIRLEAD_STEP_SECONDS" => seconds.to_s }, "bash", "script")
    [output, status.success?]
  end

  def test_what_compiles_has_no_limit_and_what_hangs_has_one
    in_folder do
      output, passed = steps("build a sh -c 'sleep 1.5; touch built'\ncheck a test -e built\nunlimited check b sleep 1.5", seconds: 1)

      assert passed, output
      output, passed = steps("check a sleep 20", seconds: 1)

      refute passed
      assert_match(/It was ended after 1 seconds/, output)
    end
  end

  def test_a_build_that_fails_is_shown_by_its_step
    in_folder do
      output, passed = steps("build a sh -c 'exit 1'\ncheck a sh -c 'echo broken; exit 1'")

      refute passed
      assert_match(/^broken$/, output)
    end
  end

  def test_the_tests_of_the_crates_are_compiled_before_their_time_begins
    in_folder("cargo" => CARGO) do |folder|
      File.chmod(0o755, "cargo")
      environment = { "CARGO_TARGET_DIR" => folder, "FAIRLEAD_STEP_SECONDS" => "1", "PATH" => "#{folder}:#{ENV.fetch("PATH")}" }
      script = File.read("#{ROOT}/bin/test").sub('cd "$root"', "cd #{folder}").sub('"$(dirname "${BASH_SOURCE[0]}")/support', "\"#{ROOT}/bin/support")
      File.write("test", script)
      output, = Open3.capture2e(environment, "bash", "test", "--no-setup", "--only", "rust")

      assert_equal "2 passed, 0 failed", output.lines.last.chomp, output
    end
  end

  def test_of_each_unsteady_test_the_last_lines_are_shown
    in_folder do
      output, passed = steps("check a sh -c 'seq 9; echo \"unsteady: a\"; seq 100000; echo \"unsteady: b\"; seq 2'\ncheck b true")
      shown = output.lines(chomp: true).drop(1)

      assert passed, output
      assert_equal ["unsteady: a", *(99_961..100_000).map(&:to_s), "unsteady: b", "1", "2"], shown.take(44)
      assert_match(/ok +b/, shown[44])
    end
  end

  # Nothing is lost if its reader needs only a part.
  def test_of_a_long_list_of_failures_the_first_ones_are_named
    in_folder do
      output, = steps("check a sh -c 'seq -f \"test number%.0f ... FAILED\" 100000; exit 1'")

      assert_equal 40, output.lines.count { |line| line.start_with?("failed: ") } / 2
    end
  end

  def test_a_failed_test_of_a_crate_and_a_file_that_ran_nothing_are_counted_and_named
    in_folder do
      File.write("results", "one::fails --- FAILED\ntest result: FAILED. 1 passed; 1 failed;\nfailed: b_test.rb has run no test to its end\n")
      output, passed = steps("tests a sh -c 'cat results; exit 1'")

      refute passed
      assert_equal ["failed: b_test.rb has run no test to its end\n", "failed: one::fails\n", "1 passed, 2 failed\n"], output.lines.last(3)
    end
  end

  # The last lines of the log do not mention the worker.
  def test_the_threads_of_a_worker_that_hung_are_named_at_the_end
    in_folder do
      line = "worker 0 (pid 12) has shown no sign of life for 1 s; replacing it (its threads: ruby in futex_do_wait)"
      output, = steps("check a sh -c 'echo \"  | #{line}\"; seq 300; exit 1'\ncheck b true")

      assert_equal ["hung: #{line}\n", "1 passed, 1 failed\n"], output.lines.last(2)
    end
  end
end
