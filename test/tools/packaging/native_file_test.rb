# frozen_string_literal: true

require "test_helper"
require_relative "../../../rakelib/packaging/native_file"

# The test build of the extension, as a file of a gem is looked at. Only such a build has symbols for debuggers.
class NativeFileTest < Minitest::Test
  def setup
    skip "readelf is for ELF" unless RUBY_PLATFORM.include?("linux")
    @file = Packaging::NativeFile.new(File.join(ROOT, "lib/fairlead/fairlead.so"))
  end

  def test_its_libraries_are_those_that_the_loader_finds
    assert_includes @file.libraries, "libc.so.6"
    refute_includes @file.libraries, "libruby.so"
  end

  def test_its_glibc_is_the_newest_version_of_a_symbol_by_number
    assert_operator Gem::Version.new(@file.glibc), :>=, Gem::Version.new("2.17")
  end

  def test_symbols_for_debuggers_are_found
    in_copy do |path|
      system("strip", "--strip-all", path, exception: true)

      refute_predicate @file, :stripped?
      assert_predicate Packaging::NativeFile.new(path), :stripped?
    end
  end

  def test_a_list_of_crates_is_found
    in_copy do |path|
      system("objcopy", "--add-section", ".dep-v0=/dev/null", path, exception: true)

      refute_predicate @file, :lists_crates?
      assert_predicate Packaging::NativeFile.new(path), :lists_crates?
    end
  end

  private

  def in_copy
    Dir.mktmpdir do |folder|
      path = File.join(folder, "fairlead.so")
      FileUtils.cp(File.join(ROOT, "lib/fairlead/fairlead.so"), path)
      yield path
    end
  end
end
