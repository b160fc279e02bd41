# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# What bin/support/ruby-tests does with files that fail.
class RubyTestsTest < Minitest::Test
  RUNNER = File.join(ROOT, "bin/support/ruby-tests")

  PASSES = "def test_it = assert(true)"
  FAILS = "def test_it = flunk('broken')"
  FAILS_ONCE = <<~RUBY
    def test_it
      again = File.exist?(__FILE__ + ".tried")
      File.write(__FILE__ + ".tried", "")
      assert(again, "late")
    end
  RUBY

  # What the runner prints for files with these tests, and whether it passes.
  def run_files(**files)
    Dir.mktmpdir do |folder|
      files.each do |name, body|
        File.write("#{folder}/#{name}_test.rb", "require 'minitest/autorun'\nclass T < Minitest::Test\n#{body}\nend\n")
      end
      output, status = Open3.capture2e(RbConfig.ruby, RUNNER, "--jobs", "2", folder)
      [output, status.success?]
    end
  end

  def sums(output) = output.scan(/^\d+ runs, \d+ assertions, (\d+) failures/).flatten.map(&:to_i)

  def test_a_file_that_passes_alone_passes_and_is_named
    output, passes = run_files(steady: PASSES, late: FAILS_ONCE)

    assert passes, output
    assert_equal [0, 0], sums(output)
    assert_match(/^unsteady: .*late_test\.rb passed alone, after this:$/, output)
    assert_match(/^  \| late$/, output)
  end

  def test_a_file_that_fails_twice_fails_and_comes_last
    output, passes = run_files(steady: PASSES, broken: FAILS)

    refute passes, output
    assert_equal [0, 1], sums(output)
    assert_match(/^== .*broken_test\.rb$(?!.*^==)/m, output)
  end

  def test_many_that_fail_are_not_tried_again
    output, passes = run_files(**(:a..:i).to_h { |name| [name, FAILS_ONCE] })

    refute passes, output
    assert_equal [1] * 9, sums(output)
    refute_match(/^unsteady/, output)
  end
end
