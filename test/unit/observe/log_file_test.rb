# frozen_string_literal: true

require "test_helper"

class LogFileTest < Minitest::Test
  include Fairlead::Test::Folders

  LogFile = Fairlead::LogFile

  def test_a_file_is_appended_to_or_emptied_before
    in_folder("a" => "old\n", "b" => "old\n") do
      [LogFile.new("a"), LogFile.new("b", truncate: true)].each { |file| write(file, "new\n") && file.close }

      assert_equal %W[old\nnew\n new\n], [File.read("a"), File.read("b")]
    end
  end

  def test_once_moved_away_it_is_reopened_under_the_same_descriptor
    in_folder do
      file = LogFile.new("a")
      before = file.fileno
      write(file, "one\n")
      File.rename("a", "a.1")
      Dir.chdir("/") { file.reopen }
      write(file, "two\n")

      assert_equal before, file.fileno
      assert_equal %W[one\n two\n], [File.read("a.1"), File.read("a")]
    ensure
      file&.close
    end
  end

  def test_when_it_cannot_be_reopened_the_old_file_serves_on
    in_folder do
      Dir.mkdir("log")
      file = LogFile.new("log/a")
      FileUtils.mv("log", "gone")
      assert_raises(Errno::ENOENT) { file.reopen }
      write(file, "one\n")

      assert_equal "one\n", File.read("gone/a")
    ensure
      file&.close
    end
  end

  def test_a_stream_keeps_its_descriptor_and_writes_at_once_also_when_its_file_is_reopened
    in_folder do
      reader, stream = IO.pipe
      stream.sync = true
      number = stream.fileno
      file = LogFile.new("a", stream: stream)
      write(file, "one\n")
      file.reopen
      stream.write("two\n")

      assert_equal [number, "one\ntwo\n", ""], [file.fileno, File.read("a"), reader.read]
    ensure
      [reader, stream].each(&:close)
    end
  end

  def test_closed_its_number_is_not_given_to_another_file
    in_folder do
      file = LogFile.new("a")
      number = file.fileno
      file.close
      File.open("b", "w") { |other| refute_equal number, other.fileno }
      IO.for_fd(number, autoclose: false).syswrite("late\n")

      assert_equal ["", ""], [File.read("a"), File.read("b")]
    end
  end

  private

  # Writes like the engine, which has only the descriptor.
  def write(file, text) = IO.for_fd(file.fileno, autoclose: false).syswrite(text)
end
