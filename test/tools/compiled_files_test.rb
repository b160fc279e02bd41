# frozen_string_literal: true

require "test_helper"
require "open3"

# test/support/compiled_files.rb, for a library of its own.
class CompiledFilesTest < Minitest::Test
  include Fairlead::Test::Folders

  LOADER = File.read(File.join(ROOT, "test/support/compiled_files.rb"))

  def with_library(text, &)
    in_folder("test/support/compiled_files.rb" => LOADER, "lib/one.rb" => text, "elsewhere.rb" => text, "share/compiled/.keep" => "", &)
  end

  # The output of a process that loads these files.
  def output(*arguments, share: "share")
    environment = { "FAIRLEAD_TESTS_SHARE" => share && File.expand_path(share), "RUBYOPT" => nil }
    code = "load './lib/one.rb'; load './elsewhere.rb'"
    Open3.capture2e(environment, RbConfig.ruby, "-r./test/support/compiled_files", *arguments, "-e", code).first
  end

  def kept = Dir.glob("share/compiled/*/*one.rb*")

  # Replaces what is kept, to see who loads it.
  def keep(code)
    kept.each { |path| File.binwrite(path, RubyVM::InstructionSequence.compile(code).to_binary) }
  end

  def test_what_one_process_has_compiled_others_load_until_the_file_changes
    with_library("puts 1") do
      assert_equal "1\n1\n", output
      assert_equal 1, kept.size
      keep("puts 2")

      assert_equal "2\n1\n", output
      File.write("lib/one.rb", "puts 3")
      assert_equal "3\n1\n", output
    end
  end

  def test_the_compiler_warns_each_process_that_wants_it
    with_library("def one = (unused = 1)") do
      output

      assert_match(/assigned but unused variable - unused/, output("-w").lines.grep(%r{lib/one.rb}).join)
    end
  end

  # Default gems with their files, and everything else that Ruby loads at its start.
  STATE = <<~'RUBY'
    def text(object) = object.inspect.gsub(/0x\h+/, "")
    Gem.instance_variable_get(:@path_to_default_spec_map).sort.each do |path, gem|
      puts path, gem.instance_variables.sort.map { |name| "#{name} #{text(gem.instance_variable_get(name))}" }
    end
    puts $LOADED_FEATURES.grep_v(/compiled_files/).sort, Gem.loaded_specs.keys
    require "json"
    puts Gem.loaded_specs.keys, Gem::Specification.load(Gem.loaded_specs["json"].loaded_from).equal?(Gem.loaded_specs["json"])
  RUBY

  def test_rubygems_knows_the_same_from_what_is_kept
    with_library("") do
      environment = { "FAIRLEAD_TESTS_SHARE" => File.expand_path("share"), "RUBYOPT" => nil }
      plain = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "-e", STATE).first
      states = Array.new(2) { Open3.capture2e(environment, RbConfig.ruby, "--disable-gems", "-r./test/support/compiled_files", "-e", STATE).first }

      assert_includes plain, "/rubygems.rb\n"
      states.each { |state| assert_empty((plain.lines - state.lines) + (state.lines - plain.lines)) }
      assert_equal 1, Dir.glob("share/compiled/*/*-defaults").size
    end
  end

  def test_without_a_folder_nothing_is_kept
    with_library("puts 1") do
      assert_equal "1\n1\n", output(share: nil)
      assert_empty kept
    end
  end
end
