# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "support/processes"
require "support/waiting"

# bin/support/ruby-tests with failing files.
class RubyTestsTest < Minitest::Test
  include Fairlead::Test::Waiting

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

  # A test that takes longer than the time from +start+ to its beginning, and at least 0.3 s.
  def longer_than_since(start)
    <<~RUBY
      def test_it
        now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
        begun = now.call
        sleep(0.01) until now.call - begun > [begun - #{start}, 0.3].max
        assert(true)
      end
    RUBY
  end

  # Returns the output of the runner for files with these tests, and true if it passes.
  def run_files(jobs: 2, **files)
    Dir.mktmpdir do |folder|
      files.each do |name, body|
        File.write("#{folder}/#{name}_test.rb", "require 'minitest/autorun'\nclass T < Minitest::Test\n#{body}\nend\n")
      end
      output, status = Open3.capture2e(RbConfig.ruby, RUNNER, "--jobs", jobs.to_s, folder)
      [output, status.success?]
    end
  end

  # The same for one file with this text.
  def run_text(text, environment: {})
    Dir.mktmpdir do |folder|
      File.write("#{folder}/one_test.rb", text)
      output, status = Open3.capture2e(environment, RbConfig.ruby, RUNNER, "--jobs", "1", folder)
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

  def test_a_file_that_ends_before_its_sum_or_runs_nothing_fails_and_is_named
    output, passes = run_files(steady: PASSES, early: "def test_it = exit!(0)", empty: "")

    refute passes, output
    assert_equal %w[early empty], output.scan(%r{^failed: .*/(\w+)_test\.rb has run no test to its end$}).flatten.sort
  end

  def test_another_build_comes_before_the_checkouts
    Dir.mktmpdir do |folder|
      Dir.mkdir("#{folder}/fairlead")
      File.write("#{folder}/fairlead/clock.rb", "OTHER = true")
      text = "require 'minitest/autorun'\nrequire 'fairlead/clock'\nclass T < Minitest::Test\ndef test_it = assert(OTHER)\nend\n"
      output, passes = run_text(text, environment: { "RUBYLIB" => folder })

      assert passes, output
    end
  end

  # One process in its group, and one with a group of its own, as a server has.
  HANGS = <<~'RUBY'
    [false, true].each { |own| File.write("#{__FILE__}.began", "#{spawn('sleep', '600', pgroup: own ? true : nil)}\n", mode: "a") }
    sleep
  RUBY

  def test_a_file_that_hangs_shows_where_and_ends_with_all_that_it_has_started
    Dir.mktmpdir do |folder|
      File.write("#{folder}/one_test.rb", HANGS)
      output, status = Open3.capture2e({ "FAIRLEAD_FILE_SECONDS" => "5" }, RbConfig.ruby, RUNNER, "--jobs", "1", folder)

      refute_predicate status, :success?, output
      assert_match(/has hung:.*one_test\.rb:2:in .*sleep'/m, output)
      assert_all_ended(folder, 4) # it runs twice
    end
  end

  def test_the_end_of_the_runner_ends_all_that_its_files_have_started
    Dir.mktmpdir do |folder|
      File.write("#{folder}/one_test.rb", HANGS)
      pid = spawn(RbConfig.ruby, RUNNER, "--jobs", "1", folder, %i[out err] => File::NULL)
      wait_until("both processes") { begun(folder).size == 2 }
      Process.kill(:TERM, pid)

      assert_equal 15, Process.wait2(pid).last.termsig
      assert_all_ended(folder, 2)
    end
  end

  def begun(folder) = Dir.glob("#{folder}/*.began").flat_map { |path| File.readlines(path).map(&:to_i) }

  def assert_all_ended(folder, count)
    assert_equal count, begun(folder).size
    wait_until("the end of all") { begun(folder).none? { |pid| Fairlead::Test::Processes.alive?(pid) } }
  end

  def test_it_says_how_long_the_slowest_took
    slow = longer_than_since(Process.clock_gettime(Process::CLOCK_MONOTONIC))
    output, = run_files(jobs: 1, slow: slow, steady: PASSES.ljust(slow.size + 1)) # the larger file runs first
    seconds = output.scan(%r{^slowest: +(\d+\.\d) s, +\d+\.\d s of CPU time, .*/(\w+)_test\.rb$})

    assert_equal %w[steady slow], output.scan(%r{^== .*/(\w+)_test\.rb$}).flatten
    assert_equal %w[slow steady], seconds.map(&:last)
    assert_operator seconds.first.first.to_f, :>=, 0.3
  end

  def test_files_that_run_together_share_a_folder
    share = "File.join(ENV.fetch('FAIRLEAD_TESTS_SHARE'), 'made')"
    meet = "def test_it = (File.write(#{share}, 'x', mode: 'a'); puts(\"made \#{File.size(#{share})}\"); assert(true))"
    output, passes = run_files(one: meet, other: meet)

    assert passes, output
    assert_includes output, "made 2"
  end

  def test_many_that_fail_are_not_tried_again
    output, passes = run_files(**(:a..:i).to_h { |name| [name, FAILS_ONCE] })

    refute passes, output
    assert_equal [1] * 9, sums(output)
    refute_match(/^unsteady/, output)
  end
end
