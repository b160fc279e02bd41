# frozen_string_literal: true

require "test_helper"
require "stringio"

class CLITest < Minitest::Test
  include Fairlead::Test::Folders

  def test_the_version_is_printed
    assert_equal [0, "fairlead #{Fairlead::VERSION}\n", ""], run_command("--version")
  end

  def test_the_help_is_printed_whatever_else_is_wrong
    status, output, = run_command("--wrokers", "--help")

    assert_equal 0, status
    assert_includes output, "Usage: fairlead"
  end

  def test_check_prints_every_value_with_where_it_comes_from
    in_folder("config.ru" => "raise 'not run'", "config/fairlead.rb" => "\nbacklog 7") do
      status, output, errors = run_command("--check", "-w", "2")

      assert_equal [0, ""], [status, errors]
      assert_match(/^workers +2 +--workers$/, output)
      assert_match(%r{^backlog +7 +config/fairlead\.rb:2$}, output)
      assert_match(/^head_timeout +30 +default$/, output)
      assert_equal Fairlead::Options.settings.size, output.lines.size
    end
  end

  def test_check_warns_of_what_has_no_effect
    in_folder("config.ru" => "", "config/fairlead.rb" => "before_fork { }") do
      assert_equal "warning: before_fork never runs, because there are no workers\n", run_command("--check").last
    end
  end

  def test_check_warns_of_certificates_that_nothing_uses
    unused = "nothing uses it, because no address of bind begins with ssl://"
    in_folder("config.ru" => "") do
      assert_equal "warning: --certificate: #{unused}\n", run_command("--check", "--certificate", "a.pem,a.key").last
      assert_equal "warning: --acme: #{unused}\n", run_command("--check", "--acme", "a.example?terms_of_service_agreed=true").last
    end
  end

  def test_check_finds_an_address_that_cannot_be
    in_folder("config.ru" => "") { refused "--bind: cannot listen on tcp://x: invalid address; use tcp://HOST:PORT", "--check", "-b", "tcp://x" }
  end

  def test_check_needs_no_rackup_file_where_there_are_files
    in_folder("www/index.html" => "") do
      assert_equal [0, ""], run_command("--check", "-www", "www").values_at(0, 2)
    end
  end

  def test_check_misses_the_rackup_file
    in_folder { |folder| refused "other.ru: no such file in #{folder}", "--check", "other.ru" }
  end

  def test_every_problem_is_told_and_nothing_starts
    in_folder do
      status, output, errors = run_command("-w", "x", "--backlog", "65536")

      assert_equal [1, "", 2], [status, output, errors.lines.size]
      assert_equal ["fairlead: --workers", "fairlead: --backlog"], errors.lines.map { |line| line[/\A.*?--\w+/] }
    end
  end

  def test_a_backtrace_has_to_be_asked_for
    in_folder { assert_raises(Fairlead::AppLoadError) { run_command("--check", "--debug") } }
  end

  private

  def refused(message, *arguments)
    assert_equal [1, "", "fairlead: #{message}\n"], run_command(*arguments)
  end

  # Runs the command as if in an empty environment.
  def run_command(*arguments)
    output = StringIO.new
    errors = StringIO.new
    variables = Fairlead::Options.flat_map(&:variables).to_h { |name| [name, ENV.delete(name)] }
    [Fairlead::CLI.start(arguments, output: output, errors: errors), output.string, errors.string]
  ensure
    ENV.update(variables)
  end
end
