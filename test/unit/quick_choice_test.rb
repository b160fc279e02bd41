# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/quick_choice"

# The tests that `bin/test --quick` chooses, which must all exist.
class QuickChoiceTest < Minitest::Test
  Choice = Fairlead::QuickChoice

  def choice(*changed) = Choice.new(changed, root: ROOT)

  def test_everything_that_the_choice_names_exists
    paths = Choice::SMOKE + Choice::WORKSPACE + Choice::TESTED + Choice::TESTS.to_a.flatten +
            Choice::CRATES.to_a.flatten.map { |name| "crates/#{name}" }

    assert_empty(paths.reject { |path| File.exist?(File.join(ROOT, path)) })
  end

  def test_each_folder_of_integration_tests_has_one_smoke_test
    folders = Dir.children(File.join(ROOT, "test/integration")).map { |name| "test/integration/#{name}" }

    assert_equal folders.sort, Choice::SMOKE.map { |path| path[%r{\Atest/integration/[^/]+}] }.sort
  end

  def test_a_change_of_ruby_runs_no_rust
    steps = choice("lib/fairlead/process/spawner.rb").steps

    assert_equal %w[style unit docs integration], steps.keys
    assert_equal %w[lib/fairlead/process/spawner.rb], steps["style"]
    assert_includes steps["integration"], "test/integration/processes/drain_test.rb"
    refute_includes steps["integration"], "test/integration/rack/env_test.rb"
  end

  def test_a_crate_is_tested_with_those_that_are_built_with_it
    assert_equal %w[wire engine], choice("crates/wire/src/error.rs").crates
    assert_equal %w[engine], choice("crates/engine/tests/files.rs").crates
    assert_equal %w[load], choice("crates/load/src/main.rs").crates
    assert_equal %w[acme], choice("crates/acme/src/main.rs").crates
    assert_equal %w[wire engine load acme supervisor], choice("Cargo.lock").crates
    assert_empty choice("ext/fairlead/src/lib.rs").crates
  end

  def test_rust_is_formatted_wherever_it_is
    %w[crates/wire/src/error.rs ext/fairlead/src/lib.rs].each { |path| assert_includes choice(path).steps, "format" }
  end

  def test_a_module_is_its_file_and_its_folder
    %w[lib/fairlead/options.rb lib/fairlead/options/types.rb].each do |path|
      assert_includes choice(path).integration, "test/integration/command/mistakes_test.rb"
    end
    refute_includes choice("lib/fairlead/options_of_others.rb").integration, "test/integration/command/mistakes_test.rb"
  end

  def test_a_test_that_has_changed_runs_and_one_that_is_gone_does_not
    changed = %w[test/integration/rack/env_test.rb test/integration/rack/no_such_test.rb test/gem/gem_test.rb]

    assert_equal ["test/integration/rack/env_test.rb"], choice(*changed).integration - Choice::SMOKE
  end

  def test_style_is_for_ruby_files_by_name_or_by_their_first_line
    files = %w[bin/setup bin/support/ruby-tests README.md Cargo.toml lib/fairlead.rb lib/gone.rb bench/apps/files.ru]

    assert_equal %w[bin/support/ruby-tests lib/fairlead.rb bench/apps/files.ru], choice(*files).steps["style"]
    assert_equal ["."], choice(".rubocop.yml").steps["style"]
  end

  def test_what_is_left_out_is_said
    left_out = choice("crates/load/src/main.rs").left_out.join(", ")

    assert_match(/\A\d+ of \d+ files in test\/integration, the crate wire, the crate engine, the crate acme, the crate supervisor, clippy, /,
                 left_out)
  end
end
