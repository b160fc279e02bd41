# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/crate_list"
require "support/two_builds"

# Two builds of the native files in the gems of a release (rakelib/packaging/build.rb), in two folders, by users with
# different homes: `bin/supply-chain builds`. They take minutes.
class ReproducibleBuildTest < Minitest::Test
  BUILDS = Fairlead::Test::TwoBuilds

  BUILDS::FILES.each do |file|
    name = file.tr("-./", "_")

    define_method(:"test_both_builds_of_#{name}_are_equal") do
      hashes = BUILDS.folders.map { |folder| Digest::SHA256.file(BUILDS.built(folder, file)).hexdigest }

      assert_equal(*hashes, "#{file} differs; compare both with diffoscope: #{BUILDS.folders.map { |folder| BUILDS.built(folder, file) }.join(" ")}")
    end

    define_method(:"test_#{name}_has_no_path_of_this_machine") do
      bytes = File.binread(BUILDS.built(BUILDS.folders.first, file))

      BUILDS.private_paths.each { |path| refute_includes bytes, path, "#{file} contains #{path}" }
    end

    define_method(:"test_#{name}_lists_its_crates") do
      crates = Fairlead::Test::CrateList.of(BUILDS.built(BUILDS.folders.first, file))
      locked = File.read(File.join(ROOT, "Cargo.lock")).scan(/^name = "(.+)"\nversion = "(.+)"$/)

      assert_operator crates.size, :>, 30
      assert_empty crates - locked
      assert_includes(crates.map(&:first), "ring")
    end
  end
end
