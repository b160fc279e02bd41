# frozen_string_literal: true

require "test_helper"

class WholeFileTest < Minitest::Test
  include Fairlead::Test::Folders

  # Raises in the middle, like a signal handler.
  class Interrupted
    def to_s = raise(Interrupt, "now")
  end

  def test_a_device_is_written_to_and_stays
    in_folder do
      skip "only root can make a device" unless system("mknod", "null", "c", "1", "3", err: File::NULL)
      Fairlead::WholeFile.write("null", "text", mode: 0o600)

      assert File.chardev?("null")
      assert_equal %w[null], Dir.children(".")
    end
  end

  def test_nothing_is_left_behind_when_a_signal_raises
    in_folder("it" => "before") do
      assert_raises(Interrupt) { Fairlead::WholeFile.write("it", Interrupted.new, mode: 0o600) }

      assert_equal [%w[it], "before"], [Dir.children("."), File.read("it")]
      Fairlead::WholeFile.write("it", "after", mode: 0o600)
      assert_equal [%w[it], "after"], [Dir.children("."), File.read("it")]
    end
  end
end
