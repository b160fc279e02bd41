# frozen_string_literal: true

require "test_helper"
require "date"
require "open3"
require_relative "../../rakelib/release/steps"

class ReleaseTest < Minitest::Test
  LOG = "# Unreleased\n\n- New.\n\n# 0.1.0 (2026-01-02)\n\n- Old.\n"
  CARGO = "[workspace.package]\nversion = \"0.2.0\"\n"
  LOCK = "[[package]]\nname = \"fairlead-wire\"\nversion = \"0.2.0\"\n"

  def setup
    @folder = Dir.mktmpdir
    git("init", "--quiet")
    git("config", "user.name", "someone")
    git("config", "user.email", "someone@example.org")
    commit("CHANGELOG.md" => LOG, "Cargo.toml" => CARGO, "Cargo.lock" => LOCK, "lib/fairlead/version.rb" => "VERSION = \"0.2.0\"\n")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_the_changes_without_a_version_become_its_section
    text = Release::Changelog.new(LOG).release("0.2.0", Date.new(2026, 3, 4))

    assert_equal "# 0.2.0 (2026-03-04)\n\n- New.\n\n# 0.1.0 (2026-01-02)\n\n- Old.\n", text
    assert_equal "- New.", Release::Changelog.new(text).section("0.2.0")
  end

  def test_a_version_is_released_once_and_not_without_changes
    assert_raises(ArgumentError) { Release::Changelog.new(LOG).release("0.1.0", Date.today) }
    assert_raises(ArgumentError) { Release::Changelog.new("# Unreleased\n\n# 0.1.0 (2026-01-02)\n").release("0.2.0", Date.today) }
  end

  def test_a_section_is_found_by_its_whole_version
    assert_nil Release::Changelog.new("# 0.1.01\n\n- No.\n\n# 0x1.0\n\n- No.\n").section("0.1.0")
  end

  def test_a_clean_checkout_whose_versions_agree_has_no_problem
    assert_empty problems
  end

  def test_it_stays_ready_after_the_changelog_is_written
    commit("CHANGELOG.md" => LOG.sub("# Unreleased", "# 0.2.0 (2026-03-04)"))

    assert_empty problems
  end

  def test_changes_without_a_commit_are_a_problem
    write("lib/new.rb" => "")

    assert_match(%r{changes without a commit:\n\?\? lib/new\.rb}, problems.join)
  end

  def test_files_that_git_does_not_show_by_default_are_a_problem_too
    git("config", "status.showUntrackedFiles", "no")
    write("lib/new.rb" => "")

    assert_match(%r{changes without a commit:\n\?\? lib/new\.rb}, problems.join)
  end

  def test_a_tag_has_the_name_of_the_version_its_commit_and_its_section
    assert_equal ["the tag is main, the version 0.2.0", "the tag main is another commit", "CHANGELOG.md has no section 0.2.0"], problems("main")

    commit("CHANGELOG.md" => LOG.sub("# Unreleased", "# 0.2.0 (2026-03-04)"))
    git("tag", "v0.2.0")

    assert_empty problems("v0.2.0")
  end

  def test_a_changelog_is_as_before_if_it_cannot_be_committed
    File.write(File.join(@folder, ".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n")
    File.chmod(0o755, File.join(@folder, ".git/hooks/pre-commit"))

    _, errors = capture_io { assert_raises(SystemExit) { Release::Steps.new(@folder).write_changelog } }

    assert_match(/git commit .* failed; CHANGELOG\.md is as before/, errors)
    assert_empty problems
    FileUtils.rm(File.join(@folder, ".git/hooks/pre-commit"))
    Release::Steps.new(@folder).write_changelog

    assert_empty problems
    assert_match(/^# 0\.2\.0 \(\d/, File.read(File.join(@folder, "CHANGELOG.md")))
  end

  def test_versions_that_differ_are_a_problem
    commit("Cargo.toml" => CARGO.sub("0.2.0", "0.1.0"))

    assert_match(/version\.rb has version 0\.2\.0, Cargo\.toml 0\.1\.0/, problems.join)

    commit("Cargo.toml" => CARGO, "Cargo.lock" => LOCK.sub("0.2.0", "0.1.0"))

    assert_match(/Cargo\.lock has fairlead-wire 0\.1\.0; run `cargo update --workspace`/, problems.join)
  end

  def test_a_version_that_is_released_already_is_a_problem
    git("tag", "v0.2.0")

    assert_empty problems

    commit("README.md" => "more")

    assert_match(/tag v0\.2\.0 is another commit/, problems.join)
  end

  def test_changes_for_a_version_that_has_its_section_are_a_problem
    commit("CHANGELOG.md" => "# Unreleased\n\n- Late.\n\n# 0.2.0 (2026-03-04)\n\n- New.\n")

    assert_match(/has a section 0\.2\.0 and changes without a version/, problems.join)
  end

  def test_a_changelog_without_changes_is_a_problem
    commit("CHANGELOG.md" => "# 0.1.0 (2026-01-02)\n\n- Old.\n")

    assert_match(/neither a section 0\.2\.0 nor changes/, problems.join)
  end

  private

  def problems(tag = nil) = Release::Checks.new(@folder).problems(tag)

  def write(files)
    files.each do |name, text|
      FileUtils.mkdir_p(File.dirname(File.join(@folder, name)))
      File.write(File.join(@folder, name), text)
    end
  end

  def commit(files)
    write(files)
    git("add", "--all")
    git("commit", "--quiet", "--message", "Change")
  end

  def git(*words) = system("git", *words, chdir: @folder, exception: true)
end
