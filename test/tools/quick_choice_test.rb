# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/quick_choice"

# Tests the choice of `bin/test --quick`, and that every path that it names exists.
class QuickChoiceTest < Minitest::Test
  include Fairlead::Test::Folders

  Choice = Fairlead::QuickChoice

  def choice(*changed) = Choice.new(changed, root: ROOT)

  def test_everything_that_the_choice_names_exists
    paths = Choice::SMOKE + Choice::PARTS + Choice::WORKSPACE + Choice::TOOLS + Choice::UNIT + Choice::TESTED.values.flatten +
            Choice::TESTS.values.flatten + Choice::GENERAL + Choice::CRATES.keys.map { |name| "crates/#{name}" }

    assert_empty(paths.reject { |path| File.exist?(File.join(ROOT, path)) })
    assert_empty(Choice::TESTS.keys.select { |path| Dir.glob("#{path}{,.rb,.rs}", base: ROOT).empty? })
  end

  def test_each_folder_of_integration_tests_has_one_smoke_test
    folders = Dir.children(File.join(ROOT, "test/integration")).map { |name| "test/integration/#{name}" }

    assert_equal folders.sort, Choice::SMOKE.map { |path| path[%r{\Atest/integration/[^/]+}] }.sort
  end

  def test_a_ruby_file_has_its_own_unit_tests_and_a_smoke_test_of_its_folder
    steps = choice("lib/fairlead/process/hooks.rb").steps

    assert_equal %w[style unit docs integration], steps.keys
    assert_equal %w[lib/fairlead/process/hooks.rb], steps["style"]
    assert_equal ["test/unit/process/hooks_test.rb"], steps["unit"] - Choice::UNIT
    assert_equal %w[test/integration/processes/workers_test.rb test/integration/supervision/start_folder_test.rb], steps["integration"]
  end

  def test_a_ruby_file_without_unit_tests_has_those_of_its_folder
    assert_equal Dir.glob("test/unit/rack/*_test.rb", base: ROOT).sort, choice("lib/fairlead/rack/input.rb").unit - Choice::UNIT
    assert_includes choice("lib/fairlead/acme.rb").unit, "test/unit/acme/store_test.rb"
  end

  def test_each_file_of_the_server_has_an_integration_test
    files = Dir.glob("{lib,ext,crates}/**/*.{rb,rs}", base: ROOT)

    assert_operator files.size, :>, 300
    assert_empty(files.select { |path| choice(path).integration.empty? })
  end

  def test_only_files_outside_of_folders_have_the_general_tests
    general = choice("lib/fairlead/version.rb").integration
    files = Dir.glob("{lib,ext}/**/*.{rb,rs}", base: ROOT) + Dir.glob("crates/*/src/**/*.rs", base: ROOT)

    assert_equal %w[test/integration/http/pipelining_test.rb test/integration/rack/streaming_body_test.rb], general
    assert_equal %w[crates/engine/src crates/system/src crates/wire/src ext ext/fairlead ext/fairlead/src lib lib/fairlead],
                 files.select { |path| choice(path).integration == general }.map { |path| File.dirname(path) }.uniq.sort
  end

  def test_a_file_may_hold_no_text
    in_folder("seed" => "\xFF\xFE\n") do |folder|
      assert_equal %w[docs], Choice.new(["seed"], root: folder).steps.keys
    end
  end

  def test_a_crate_is_tested_by_its_code_and_by_the_tests_that_are_called_the_same
    assert_equal({ "rust-engine" => %w[--package fairlead-engine --lib], "rust-engine-tls" => %w[--package fairlead-engine --test tls] },
                 choice("crates/engine/src/tls/store.rs").rust)
    assert_equal %w[rust-wire rust-wire-path], choice("crates/wire/src/path.rs").rust.keys
    assert_equal %w[--package fairlead-load --bins], choice("crates/load/src/main.rs").rust["rust-load"]
    assert_equal Choice::CRATES.keys.map { |name| "rust-#{name}" }, choice("Cargo.lock").rust.keys
    assert_equal %w[rust-supervisor], choice("crates/shared-memory/src/lib.rs").rust.keys
    assert_empty choice("ext/fairlead/src/lib.rs").rust
  end

  def test_comments_of_rust_are_formatted_and_read_only
    steps = choice("comments crates/engine/src/lib.rs").steps

    assert_equal %w[format docs], steps.keys
  end

  def test_rust_is_formatted_wherever_it_is
    %w[crates/wire/src/error.rs ext/fairlead/src/lib.rs].each { |path| assert_includes choice(path).steps, "format" }
  end

  def test_a_module_is_its_file_and_its_folder
    %w[lib/fairlead/options.rb lib/fairlead/options/types.rb].each do |path|
      assert_equal ["test/integration/command/sources_test.rb"], choice(path).integration
    end
  end

  def test_a_test_that_has_changed_runs_and_one_that_is_gone_does_not
    changed = %w[test/integration/rack/env_test.rb test/integration/rack/no_such_test.rb test/gem/gem_test.rb test/unit/cli_test.rb]

    assert_equal ["test/integration/rack/env_test.rb"], choice(*changed).integration
    assert_equal ["test/unit/cli_test.rb"], choice(*changed).unit
  end

  def test_the_tools_are_tested_when_they_change
    ["bin/support/ruby-tests", "test/support/waiting.rb", "bench/harness.rb", ".ci/run"].each { |path| assert_includes choice(path).steps, "tools" }
    refute_includes choice("lib/fairlead/cli.rb").steps, "tools"
  end

  def test_style_is_for_ruby_files_by_name_or_by_their_first_line_and_scripts_are_for_the_shell
    files = %w[bin/setup bin/support/ruby-tests README.md Cargo.toml lib/fairlead.rb lib/gone.rb bench/apps/files.ru]

    assert_equal %w[bin/support/ruby-tests lib/fairlead.rb bench/apps/files.ru], choice(*files).steps["style"]
    assert_equal ["bin/setup"], choice(*files).steps["shell"]
    assert_equal ["."], choice(".rubocop.yml").steps["style"]
  end

  def test_what_is_left_out_is_said
    left_out = choice("lib/fairlead/cli.rb").left_out.join(", ")

    assert_match(%r{\A\d+ of \d+ files in test/unit, \d+ of \d+ files in test/integration, clippy, }, left_out)
  end
end
