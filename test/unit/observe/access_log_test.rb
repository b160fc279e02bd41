# frozen_string_literal: true

require "test_helper"

class AccessLogTest < Minitest::Test
  include Fairlead::Test::Folders

  AccessLog = Fairlead::AccessLog

  def test_without_a_path_there_is_no_descriptor
    assert_nil AccessLog.new(nil).fileno
  end

  def test_a_dash_is_the_standard_output
    assert_equal $stdout.fileno, AccessLog.new("-").fileno
    refute_predicate AccessLog.new("-"), :file?
  end

  def test_a_file_is_appended_to
    in_folder("access.log" => "old\n") do
      log = AccessLog.new("access.log")
      write(log, "new\n")

      assert_equal "old\nnew\n", File.read("access.log")
    ensure
      log&.close
    end
  end

  def test_once_moved_away_it_is_reopened_under_the_same_descriptor
    in_folder do
      log = AccessLog.new("access.log")
      before = log.fileno
      write(log, "one\n")
      File.rename("access.log", "access.log.1")
      Dir.chdir("/") { log.reopen }
      write(log, "two\n")

      assert_equal before, log.fileno
      assert_equal %W[one\n two\n], [File.read("access.log.1"), File.read("access.log")]
    ensure
      log&.close
    end
  end

  def test_when_it_cannot_be_reopened_the_old_file_serves_on
    in_folder do
      Dir.mkdir("log")
      log = AccessLog.new("log/access.log")
      FileUtils.mv("log", "gone")
      log.reopen
      write(log, "one\n")

      assert_equal "one\n", File.read("gone/access.log")
    ensure
      log&.close
    end
  end

  def test_a_file_that_cannot_be_opened_is_a_problem_of_the_option
    error = assert_raises(Fairlead::ConfigurationError) { AccessLog.new("/nowhere/at/all.log", origin: "--access-log") }

    assert_match(/\A--access-log: No such file/, error.message)
  end

  private

  # As the engine does: it knows the descriptor only.
  def write(log, text)
    IO.for_fd(log.fileno, autoclose: false).syswrite(text)
  end
end
