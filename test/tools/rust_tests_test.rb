# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# bin/support/rust-tests with failing tests. A program that prints like cargo replaces cargo.
class RustTestsTest < Minitest::Test
  RUNNER = File.join(ROOT, "bin/support/rust-tests")

  # Prints two targets. Tests in the first line of "failing" fail at the first attempt, tests in the second line at the
  # second one.
  CARGO = <<~'RUBY'
    first, second = File.readlines("failing", chomp: true).map(&:split)
    failing = ARGV.include?("--exact") ? second : first
    tests = ARGV.include?("--exact") ? ARGV[(ARGV.index("--test-threads=1") + 1)..] : %w[early::one late::two late::three]
    puts "", "running #{tests.size} tests"
    if failing.any?
      puts "", "failures:", "", *failing.flat_map { |name| ["---- #{name} stdout ----", "#{name} was late", ""] }, ""
      puts "failures:", *failing.map { |name| "    #{name}" }, ""
    end
    puts "test result: #{failing.any? ? "FAILED" : "ok"}. #{(tests - failing).size} passed; #{failing.size} failed; 1 ignored; 0 measured"
    puts "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"
    exit failing.empty?
  RUBY

  def run_tests(first: "", second: "", program: CARGO)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/failing", "#{first}\n#{second}\n")
      File.write("#{folder}/cargo", program)
      output, status = Open3.capture2e(RbConfig.ruby, RUNNER, RbConfig.ruby, "cargo", "test", chdir: folder)
      [output, status.success?]
    end
  end

  # Sums of passed and failed tests, counted like in the step.
  def sums(output) = output.scan(/^test result: \S+ (\d+) passed; (\d+) failed/).transpose.map { |column| column.sum(&:to_i) }

  def test_tests_that_pass_run_once
    output, passes = run_tests

    assert passes, output
    assert_equal [3, 0], sums(output)
    refute_match(/once more/, output)
  end

  def test_a_test_that_passes_alone_passes_and_is_named
    output, passes = run_tests(first: "late::two late::three")

    assert passes, output
    assert_equal [3, 0], sums(output)
    assert_match(/^unsteady: late::two passed alone, after this:\n  \| ---- late::two stdout ----\n  \| late::two was late$/, output)
    assert_match(/^unsteady: late::three passed alone/, output)
  end

  def test_a_test_that_fails_twice_fails
    output, passes = run_tests(first: "late::two late::three", second: "late::three")

    refute passes, output
    assert_equal [2, 1], sums(output)
    assert_match(/^---- late::three stdout ----$/, output)
  end

  def test_many_failures_are_not_tried_again
    output, passes = run_tests(first: (1..9).map { |number| "late::number#{number}" }.join(" "))

    refute passes, output
    assert_equal 9, sums(output).last
    refute_match(/once more/, output)
  end

  # The second attempt would leave out the second test, and pass.
  def test_a_line_between_the_names_of_failed_tests_hides_none
    program = CARGO.sub("    \#{name}", "\\0\nof another process")
    output, passes = run_tests(first: "late::two late::three", program: program)

    refute passes, output
    assert_equal 2, sums(output).last
  end

  # Of a target that a signal ends, no test is named.
  def test_a_target_that_crashes_fails_beside_an_unsteady_one
    crash = "puts 'error: test failed, to rerun pass `--test a`', 'error: test failed, to rerun pass `--test b`' unless ARGV.include?('--exact')"
    output, passes = run_tests(first: "late::two", program: "#{crash}\n#{CARGO}")

    refute passes, output
    assert_equal 1, sums(output).last
  end

  def test_a_crate_that_does_not_compile_is_not_tried_again
    output, passes = run_tests(program: "puts 'error: could not compile'; exit 101")

    refute passes, output
    refute_match(/once more/, output)
  end
end
