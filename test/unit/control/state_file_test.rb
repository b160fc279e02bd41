# frozen_string_literal: true

require "test_helper"

class StateFileTest < Minitest::Test
  include Fairlead::Test::Folders

  StateFile = Fairlead::Control::StateFile

  def test_plain_and_quoted_texts_are_read_and_the_rest_is_left_out
    text = "---\npid: 12\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: \"12e3: #\\\"\\\\\"\nother: 1\nnonsense"
    in_folder("server.state" => text) do
      assert_equal({ "pid" => "12", "control_url" => "tcp://127.0.0.1:9293", "control_auth_token" => '12e3: #"\\' },
                   StateFile.read("server.state"))
    end
  end

  def test_no_file_says_nothing_and_one_that_cannot_be_read_is_an_error
    in_folder do
      Dir.mkdir("server.state")

      assert_equal "server.state", assert_raises(Fairlead::StateFileError) { StateFile.read("server.state") }.path
      assert_empty StateFile.read("/nowhere/server.state")
    end
  end
end
