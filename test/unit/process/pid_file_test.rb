# frozen_string_literal: true

require "test_helper"

class PidFileTest < Minitest::Test
  include Fairlead::Test::Folders

  PidFile = Fairlead::PidFile

  def test_an_empty_file_and_those_of_this_process_and_of_one_that_is_gone_are_free
    in_folder("empty.pid" => "", "own.pid" => Process.pid.to_s, "old.pid" => dead_pid.to_s) do
      %w[empty.pid own.pid old.pid none.pid].each { |path| assert_nil PidFile.check(path, running: true) }
    end
  end

  def test_a_check_changes_nothing_and_knows_the_owner
    in_folder("server.pid" => Process.ppid.to_s, "old.pid" => dead_pid.to_s) do
      PidFile.check("server.pid")
      PidFile.check("old.pid", running: true)
      PidFile.check("none.pid", running: true)
      PidFile.check("server.pid", running: true, owner: Process.ppid)

      assert_equal Process.ppid, assert_raises(Fairlead::PidFileError) { PidFile.check("server.pid", running: true) }.pid
      assert_equal %w[old.pid server.pid], Dir.children(".").sort
    end
  end

  def test_a_file_that_holds_something_else_is_refused
    in_folder("config.ru" => "run App\n") do
      assert_raises(Fairlead::PidFileError) { PidFile.check("config.ru") }
    end
  end

  def test_a_link_is_not_followed
    in_folder("victim" => "") do
      File.symlink("victim", "server.pid")
      error = assert_raises(Fairlead::PidFileError) { PidFile.check("server.pid") }

      assert_match(/symbolic link/, error.message)
    end
  end

  private

  def dead_pid
    pid = fork { exit!(0) }
    Process.wait(pid)
    pid
  end
end
