# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

class UnsupportedTest < Minitest::Test
  include Fairlead::Test::Folders

  # Another Ruby, as far as its constants.
  SEEMS = {
    "jruby" => 'Object.send(:remove_const, :RUBY_ENGINE); RUBY_ENGINE = "jruby"',
    "windows" => 'Object.send(:remove_const, :RUBY_PLATFORM); RUBY_PLATFORM = "x64-mingw-ucrt"'
  }.freeze

  def test_cruby_on_linux_and_macos_is_supported
    %w[x86_64-linux aarch64-linux-musl arm64-darwin23 x86_64-freebsd14].each do |platform|
      assert_nil Fairlead::Unsupported.problem(engine: "ruby", platform: platform), platform
    end
  end

  def test_other_rubies_and_windows_are_named_with_a_way_out
    %w[jruby truffleruby].each do |engine|
      assert_match(/needs CRuby.*this is #{engine}\. Use CRuby, or the server Puma/, Fairlead::Unsupported.problem(engine: engine))
    end
    %w[x64-mingw-ucrt x64-mswin64_140 x86_64-cygwin].each do |platform|
      assert_match(/does not run on Windows \(#{platform}\).*WSL/, Fairlead::Unsupported.problem(engine: "ruby", platform: platform))
    end
  end

  def test_requiring_fairlead_there_fails_at_once_with_that_message
    { "jruby" => /needs CRuby/, "windows" => /does not run on Windows/ }.each do |system, message|
      output, status = run_as(system, "-I", File.join(ROOT, "lib"), "-e", "begin; require 'fairlead'; rescue LoadError => e; puts e.message; end")

      assert_predicate status, :success?, output
      assert_match message, output
      assert_equal 1, output.lines.size
    end
  end

  def test_installing_the_gem_there_fails_with_that_message_and_writes_no_makefile
    { "jruby" => /needs CRuby/, "windows" => /does not run on Windows/ }.each do |system, message|
      in_folder({}) do |folder|
        output, status = run_as(system, File.join(ROOT, "ext/fairlead/extconf.rb"), chdir: folder)

        assert_equal 1, status.exitstatus, output
        assert_match message, output
        refute_path_exists File.join(folder, "Makefile")
      end
    end
  end

  private

  def run_as(system, *arguments, **options)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "seems.rb"), SEEMS.fetch(system))
      Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "--disable-gems", "-r", File.join(folder, "seems.rb"), *arguments, **options)
    end
  end
end
