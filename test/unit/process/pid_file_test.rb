# frozen_string_literal: true

require "test_helper"

class PidFileTest < Minitest::Test
  include Fairlead::Test::Folders

  PidFile = Fairlead::PidFile

  def test_it_holds_the_id_until_it_is_removed
    in_folder do
      file = PidFile.write("server.pid")

      assert_equal "#{Process.pid}\n", File.read("server.pid")
      Dir.chdir("/") { file.remove }
      refute_path_exists "server.pid"
    end
  end

  def test_the_file_of_a_process_that_is_gone_is_taken_over
    in_folder("server.pid" => "#{dead_pid}\nand more than fits into the new one\n".lines.first) do
      PidFile.write("server.pid")

      assert_equal "#{Process.pid}\n", File.read("server.pid")
    end
  end

  def test_an_empty_file_and_one_with_its_own_id_are_taken_over
    in_folder("empty.pid" => "", "own.pid" => Process.pid.to_s) do
      %w[empty.pid own.pid].each { |path| assert_equal File.expand_path(path), PidFile.write(path).path }
      assert_equal ["#{Process.pid}\n"] * 2, [File.read("empty.pid"), File.read("own.pid")]
    end
  end

  def test_the_file_of_a_running_process_is_refused
    in_folder("server.pid" => Process.ppid.to_s) do
      error = assert_raises(Fairlead::PidFileError) { PidFile.write("server.pid") }

      assert_equal [Process.ppid, File.expand_path("server.pid")], [error.pid, error.path]
      assert_equal Process.ppid.to_s, File.read("server.pid")
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
      assert_raises(Fairlead::PidFileError) { PidFile.write("config.ru") }
      assert_equal "run App\n", File.read("config.ru")
    end
  end

  def test_a_link_is_not_followed
    in_folder("victim" => "") do
      File.symlink("victim", "server.pid")
      error = assert_raises(Fairlead::PidFileError) { PidFile.write("server.pid") }

      assert_match(/symbolic link/, error.message)
      assert_empty File.read("victim")
    end
  end

  def test_a_folder_that_is_not_there_is_an_error
    assert_raises(Fairlead::PidFileError) { PidFile.write("/nowhere/at/all.pid") }
  end

  def test_the_file_of_a_successor_stays
    in_folder do
      file = PidFile.write("server.pid")
      File.write("server.pid", "1\n")
      file.remove

      assert_equal "1\n", File.read("server.pid")
    end
  end

  def test_a_forked_process_does_not_remove_it
    in_folder do
      file = PidFile.write("server.pid")
      Process.wait(fork { file.remove || exit!(0) })

      assert_path_exists "server.pid"
    end
  end

  def test_of_several_that_start_at_once_one_wins
    in_folder("server.pid" => dead_pid.to_s) do
      gate, opener = IO.pipe
      pids = Array.new(8) { fork { exit!(compete(gate, opener)) } }
      opener.close
      winners = pids.count { |pid| Process.wait2(pid).last.success? }

      assert_equal 1, winners
    end
  end

  private

  # Waits until the gate opens, and for its rivals to have met the file before it ends and frees its id.
  def compete(gate, opener)
    opener.close
    gate.read
    PidFile.write("server.pid")
    Fairlead::Test::Waiting.wait_until("the rivals") { Dir.children(".").grep(/lost/).size == 7 }
    0
  rescue Fairlead::PidFileError
    File.write("lost-#{Process.pid}", "")
    1
  end

  def dead_pid
    pid = fork { exit!(0) }
    Process.wait(pid)
    pid
  end
end
