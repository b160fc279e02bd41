# frozen_string_literal: true

require "test_helper"
require "yaml"

class StateFileTest < Minitest::Test
  include Fairlead::Test::Folders

  StateFile = Fairlead::Control::StateFile
  VALUES = { pid: Process.pid, control_url: "tcp://127.0.0.1:9293", control_auth_token: "secret", running_from: "/srv/my app" }.freeze

  def test_it_has_the_four_keys_of_puma_as_yaml
    in_folder do
      StateFile.new("server.state").write(VALUES)

      assert_equal VALUES.transform_keys(&:to_s), YAML.safe_load_file("server.state")
      assert_equal VALUES.to_h { |key, value| [key.to_s, value.to_s] }, StateFile.read("server.state")
    end
  end

  def test_texts_that_yaml_would_read_as_something_else_are_quoted
    in_folder do
      values = VALUES.merge(control_auth_token: "12e3: #\"\\", control_url: "unix://@a b")
      StateFile.new("server.state").write(values)

      assert_equal values.transform_keys(&:to_s), YAML.safe_load_file("server.state")
      assert_equal values[:control_auth_token], StateFile.read("server.state")["control_auth_token"]
    end
  end

  def test_what_there_is_not_is_left_out
    in_folder do
      StateFile.new("server.state").write(VALUES.merge(control_url: nil, control_auth_token: nil))

      assert_equal %w[pid running_from], YAML.safe_load_file("server.state").keys
    end
  end

  def test_only_the_owner_may_read_it_unless_told_otherwise
    in_folder do
      [[nil, 0o600], [0o640, 0o640]].each do |mode, expected|
        StateFile.new("server.state", mode: mode).write(VALUES)

        assert_equal expected, File.stat("server.state").mode & 0o777
      end
    end
  end

  def test_one_that_was_left_behind_is_replaced_and_nothing_else_appears
    in_folder("server.state" => "---\npid: 1\nnonsense") do |folder|
      StateFile.new("server.state").write(VALUES)

      assert_equal Process.pid.to_s, StateFile.read("server.state")["pid"]
      assert_equal ["server.state"], Dir.children(folder)
    end
  end

  def test_nobody_can_prepare_a_file_or_a_link_for_it
    in_folder("victim" => "precious") do
      [Process.pid, "#{Process.pid}~"].each { |suffix| File.symlink("victim", "server.state.#{suffix}") }
      File.symlink("victim", "server.state")
      StateFile.new("server.state").write(VALUES)

      assert_equal "precious", File.read("victim")
      refute File.symlink?("server.state")
    end
  end

  def test_nothing_is_left_when_it_cannot_be_written
    in_folder do |folder|
      Dir.mkdir("server.state")

      assert_raises(Fairlead::StateFileError) { StateFile.new("server.state").write(VALUES) }
      assert_equal ["server.state"], Dir.children(folder)
    end
  end

  def test_it_is_removed_by_the_process_that_wrote_it_unless_another_has_replaced_it
    in_folder do
      file = StateFile.new("server.state").tap { |state| state.write(VALUES) }
      Process.wait(fork { file.remove })

      assert_path_exists "server.state"
      file.remove

      refute_path_exists "server.state"
      file.write(VALUES.merge(pid: 1))
      file.remove

      assert_path_exists "server.state"
    end
  end

  def test_a_folder_that_is_not_there_is_named
    error = assert_raises(Fairlead::StateFileError) { StateFile.new("/nowhere/server.state").write(VALUES) }

    assert_equal "/nowhere/server.state", error.path
    assert_empty StateFile.read("/nowhere/server.state")
  end
end
