# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/other_ruby"

# `bin/test --ruby` forgets no test folder, and every path that it names exists.
class OtherRubyTest < Minitest::Test
  CHOSEN = Fairlead::OtherRuby::CHOSEN.keys
  LEFT_OUT = Fairlead::OtherRuby::LEFT_OUT.keys

  def test_everything_that_is_named_exists
    assert_empty((CHOSEN + LEFT_OUT).reject { |path| File.exist?(File.join(ROOT, path)) })
  end

  def test_each_folder_of_integration_tests_is_chosen_or_left_out
    folders = Dir.children(File.join(ROOT, "test/integration")).map { |name| "test/integration/#{name}" }

    assert_empty folders - CHOSEN - LEFT_OUT
    assert_empty CHOSEN & LEFT_OUT
  end

  def test_no_file_runs_twice
    assert_empty(CHOSEN.select { |path| CHOSEN.any? { |folder| path.start_with?("#{folder}/") } })
  end
end
