# frozen_string_literal: true

require "test_helper"
require "open3"

# With another program in the place of Cargo.
class CargoMakefileTest < Minitest::Test
  include Fairlead::Test::Folders

  # Writes the result of `cargo build`, in a folder of the target if there is one.
  CARGO = <<~'SH'
    #!/bin/sh
    if [ "$1" = --version ]; then echo "cargo 1.100.0 (0123456 2026-01-01)"; exit; fi
    mkdir -p target/$CARGO_BUILD_TARGET/release
    echo "built" > target/$CARGO_BUILD_TARGET/release/fairlead-load
  SH

  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_the_result_is_found_in_the_folder_of_a_configured_target_too
    ["", "x86_64-unknown-linux-gnu"].each do |target|
      in_folder({}) do |folder|
        environment = { "CARGO" => cargo, "CARGO_BUILD_TARGET" => target }
        run!(environment, RbConfig.ruby, File.join(ROOT, "ext/load/extconf.rb"))
        run!(environment, "make", "sitearchdir=#{folder}", "install")

        assert_equal "built\n", File.read(File.join(folder, "fairlead/fairlead-load"))
      end
    end
  end

  private

  def run!(environment, *command)
    output, status = Open3.capture2e(environment, *command)
    assert_predicate status, :success?, output
  end

  def cargo
    File.join(@folder, "cargo").tap do |path|
      File.write(path, CARGO)
      File.chmod(0o755, path)
    end
  end
end
