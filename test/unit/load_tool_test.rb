# frozen_string_literal: true

require "test_helper"

class LoadToolTest < Minitest::Test
  include Fairlead::Test::Folders

  PROGRAM = Fairlead::LoadTool::PROGRAM

  def test_the_program_is_found_in_the_load_path
    in_folder(PROGRAM => "") do |folder|
      File.chmod(0o755, PROGRAM)

      assert_equal File.join(folder, PROGRAM), Fairlead::LoadTool.find(["/nowhere", folder])
    end
  end

  def test_the_program_is_found_on_the_path
    in_folder("bin/fairlead-load" => "") do |folder|
      File.chmod(0o755, "bin/fairlead-load")

      assert_equal File.join(folder, "bin/fairlead-load"), Fairlead::LoadTool.find([], path: "/nowhere:#{folder}/bin")
    end
  end

  def test_the_load_path_comes_before_the_path
    in_folder(PROGRAM => "", "bin/fairlead-load" => "") do |folder|
      File.chmod(0o755, PROGRAM, "bin/fairlead-load")

      assert_equal File.join(folder, PROGRAM), Fairlead::LoadTool.find([folder], path: File.join(folder, "bin"))
    end
  end

  def test_a_file_that_cannot_be_run_is_no_program
    in_folder(PROGRAM => "") do |folder|
      error = assert_raises(Fairlead::ExtensionError) { Fairlead::LoadTool.find([folder], path: "") }

      assert_match(/the load tool is not installed: run `gem install fairlead-load`/, error.message)
    end
  end
end
