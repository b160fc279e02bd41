# frozen_string_literal: true

require "test_helper"

class ConfigurationConfigFileTest < Minitest::Test
  include Fairlead::Test::Folders

  Options = Fairlead::Options

  def test_every_option_is_a_method
    in_folder do
      Options.select(&:in_file?).each do |entry|
        entry.methods_in_file.each do |name|
          File.write("fairlead.rb", entry.example.sub(/\A#{entry.name}/, name.to_s))
          file = Fairlead::Configuration::ConfigFile.new("fairlead.rb").read
          expected = entry.expand(*entry.valid)

          assert_empty file.problems, name
          assert_equal expected.keys, file.settings.keys
          assert_equal expected, file.settings.transform_values(&:value) unless callable?(entry)
        end
      end
    end
  end

  def test_an_empty_file_sets_nothing
    assert_equal [{}, []], [read("").settings, read("").problems]
  end

  def test_a_yes_or_no_needs_no_value
    assert_equal true, read("preload_app!\n")[:preload]
  end

  def test_an_option_remembers_the_line_it_stands_in
    assert_equal "fairlead.rb:3", read("\n\nworkers 2\n").settings[:workers].origin
  end

  def test_an_option_remembers_by_which_name_it_was_set
    file = read("preload_app! false\npreload true\npersistent_timeout 5\nbind 'tcp://127.0.0.1:1'")

    assert_equal ["fairlead.rb:2", "fairlead.rb:3 (persistent_timeout)", "fairlead.rb:4"],
                 %i[preload keep_alive_timeout bind].map { |name| file.settings[name].origin }
  end

  def test_a_problem_has_the_line_also_when_it_is_found_by_a_method_of_the_file
    file = read("def many\n  workers 'many'\nend\n\nmany\n")

    assert_equal ["fairlead.rb:2"], file.problems.map(&:origin)
  end

  def test_a_name_means_what_it_means_outside
    assert_empty read("File.basename(__FILE__)\nENV.fetch('HOME', 'x')\nServer = 1\nraise unless Server == 1 && File == ::File").problems
  end

  def test_a_misspelt_option_is_a_problem_and_the_rest_is_still_read
    file = read("wrokers 2\npreload!\nbacklog 5")

    assert_equal ["fairlead.rb:1: wrokers: unknown option; did you mean workers?",
                  "fairlead.rb:2: preload!: unknown option; did you mean preload?"], file.problems.map(&:to_s)
    assert_equal 5, file[:backlog]
  end

  def test_an_exception_is_a_problem_with_its_line
    assert_equal ["fairlead.rb:2: undefined local variable or method `missing' (NameError)"],
                 read("\ntag missing\n").problems.map { |problem| problem.to_s.sub(/'(?=missing)/, "`") }
    assert_equal ["fairlead.rb:1: cannot load such file -- nowhere/x (LoadError)"], read("require 'nowhere/x'").problems.map(&:to_s)
  end

  def test_a_syntax_error_is_a_problem_with_its_line
    problems = read("workers 2\nif then(\n").problems

    assert_equal 1, problems.size
    assert_match(/\A\S*fairlead\.rb:[23]:/, problems.first.to_s)
  end

  def test_a_file_that_is_not_there_is_a_problem
    problems = in_folder { Fairlead::Configuration::ConfigFile.new("nowhere.rb").read.problems }

    assert_equal ["nowhere.rb: cannot be read (No such file or directory)"], problems.map(&:to_s)
  end

  def test_every_hook_takes_a_block_under_each_of_its_names
    names = Fairlead::Hooks::NAMES.keys + Fairlead::Hooks::ALIASES.keys
    file = read(names.map { |name| "#{name} { }" }.join("\n"))

    assert_empty file.problems
    assert_equal Fairlead::Hooks::NAMES.keys.sort, file.hooks.names.sort
  end

  def test_a_hook_without_a_block_is_a_problem
    assert_equal ["fairlead.rb:1: before_fork: needs a block"], read("before_fork").problems.map(&:to_s)
  end

  private

  # Two blocks are never equal.
  def callable?(entry) = entry.respond_to?(:type) && entry.type.is_a?(Options::Types::Callable)

  def read(text)
    in_folder("fairlead.rb" => text) { Fairlead::Configuration::ConfigFile.new("fairlead.rb").read }
  end
end
