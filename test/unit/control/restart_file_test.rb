# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/fake_server"

class RestartFileTest < Minitest::Test
  include Fairlead::Test::Folders

  def setup
    @server = Fairlead::Test::FakeServer.new
  end

  def watch = Fairlead::Control::RestartFile.new(@server)

  def touch(time) = FileUtils.mkdir_p("tmp").then { FileUtils.touch("tmp/restart.txt", mtime: time) }

  def test_each_touch_asks_for_one_restart
    in_folder do
      touch(Time.now - 60)
      file = watch
      2.times { file.look }

      assert_empty @server.asked
      touch(Time.now)
      2.times { file.look }

      assert_equal [:restart], @server.asked
      touch(Time.now + 1)
      file.look

      assert_equal %i[restart restart], @server.asked
    end
  end

  def test_the_file_need_not_exist_and_is_not_made
    in_folder do
      file = watch
      file.look

      refute_path_exists "tmp"
      touch(Time.now)
      file.look

      assert_equal [:restart], @server.asked
    end
  end
end
