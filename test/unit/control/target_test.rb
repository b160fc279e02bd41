# frozen_string_literal: true

require "test_helper"
require "fairlead/control/tool"

# The server that `fairlead ctl` finds.
class ControlTargetTest < Minitest::Test
  include Fairlead::Test::Folders

  # Zero and negative numbers mean groups of processes, or all of them.
  def test_only_the_id_of_one_process_is_an_id
    ["0", "-1", "99999999999999999999", "12 13", "", "x"].each do |text|
      in_folder("pid" => text, "state" => "---\npid: #{text.inspect}\n") do
        assert_match(/the pid file pid contains no process id/, missing("-P", "pid"))
        assert_match(/the state file state contains no process id/, missing("-S", "state")) unless text.empty?
      end
    end
    %w[0 -1].each { |pid| assert_match(/-p contains no process id/, missing("-p#{pid}")) }
  end

  def test_the_id_of_a_process
    in_folder("pid" => "#{Process.pid}\n") { assert_equal Process.pid, target("-P", "pid").pid }
  end

  private

  def target(*arguments) = Fairlead::Control::Tool::Target.new(Fairlead::Control::Tool::Arguments.new([*arguments, "status"]))

  def missing(*arguments) = assert_raises(Fairlead::Control::Tool::Target::Missing) { target(*arguments) }.message
end
