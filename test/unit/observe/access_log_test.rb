# frozen_string_literal: true

require "test_helper"

class AccessLogTest < Minitest::Test
  include Fairlead::Test::Folders

  AccessLog = Fairlead::AccessLog

  def test_without_a_path_there_is_no_descriptor
    log = AccessLog.new(nil)

    assert_equal [nil, false], [log.fileno, log.output?]
  end

  def test_a_dash_is_where_the_messages_go
    log = AccessLog.new("-")

    assert_equal [nil, true], [log.fileno, log.output?]
    assert_nil log.file
  end

  def test_a_path_is_a_file
    in_folder do |folder|
      log = AccessLog.new("access.log")

      assert_equal [log.file.fileno, "#{folder}/access.log"], [log.fileno, log.file.path]
    ensure
      log&.close
    end
  end

  def test_a_file_that_cannot_be_opened_is_a_problem_of_the_option
    error = assert_raises(Fairlead::ConfigurationError) { AccessLog.new("/nowhere/at/all.log", origin: "--access-log") }

    assert_match(/\A--access-log: No such file/, error.message)
  end
end
