# frozen_string_literal: true

require "test_helper"
require "support/puma_files"

# Whole configuration files for Puma have the same meaning as in Puma, also after `fairlead migrate`.
class ConfigurationPumaFilesTest < Minitest::Test
  include Fairlead::Test::Folders

  Configuration = Fairlead::Configuration
  PumaFiles = Fairlead::Test::PumaFiles

  PumaFiles::ALL.each do |shape|
    define_method(:"test_#{shape.name.tr(" ", "_")}") do
      with(shape) do |configuration|
        assert_equal shape.expected.to_h { |name, value| [name, expected(name, value)] },
                     shape.expected.to_h { |name, _| [name, configuration[name]] }
        assert_empty shape.hooks - configuration.hooks.names
        assert_equal shape.accepted.sort, accepted(configuration).sort
      end
    end

    define_method(:"test_#{shape.name.tr(" ", "_")}_means_the_same_after_its_migration") do
      theirs = with(shape) { |configuration| meaning(configuration) }
      text = Configuration::Migration.new(shape.text, "config/puma.rb").to_s
      ours = with(shape, "config/fairlead.rb", text) { |configuration| meaning(configuration) }

      assert_equal theirs, ours
    end
  end

  def test_there_are_enough_of_them
    assert_operator PumaFiles::ALL.size, :>=, 20
    assert_equal PumaFiles::ALL.map(&:name).uniq, PumaFiles::ALL.map(&:name)
  end

  private

  def with(shape, path = "config/puma.rb", text = shape.text)
    in_folder(path => text) do
      shape.folders.each { |folder| FileUtils.mkdir_p(folder) }
      with_environment(shape.environment) do
        yield Configuration.load(Configuration::Flags.parse(shape.arguments), environment: ENV)
      end
    end
  end

  # Sets the process's own variables, because the files read them.
  def with_environment(variables)
    before = ENV.to_h
    Fairlead::Options.flat_map(&:variables).each { |name| ENV.delete(name) }
    ENV.update(variables)
    yield
  ensure
    ENV.replace(before)
  end

  # A number stands for that port on every interface, APP for the path of the folder app, FILE for the name of the file.
  def expected(name, value)
    case value
    when Array then value.map { |address| address.is_a?(Integer) ? Fairlead::Binding.address_for_port(address) : expected(name, address) }
    when String then name == :directory ? File.expand_path(value) : value.gsub(/\b[A-Z]{3,}\b/) { |word| path(word) }
    else value
    end
  end

  def path(word) = word == "FILE" ? "puma.rb" : File.expand_path(word.downcase)

  # Methods of the table with a warning.
  def accepted(configuration)
    known = Configuration::Accepted.map(&:name)
    configuration.warnings.filter_map do |text|
      name = text[/\A\S+:\d+: (.+?) has no effect: /, 1]&.to_sym
      name if known.include?(name) || name.to_s.start_with?("require")
    end
  end

  # The whole configuration, without the folder of the test and the name of the file.
  def meaning(configuration)
    values = Fairlead::Options.settings.to_h { |option| [option.name, configuration[option.name]] }
    values = values.inspect.gsub(/#{Regexp.escape(Dir.pwd)}|#{Regexp.escape(File.realpath(Dir.pwd))}/, "HERE")
    values = values.gsub(/#{Regexp.escape(File.basename(Dir.pwd))}|(?:puma|fairlead)\.rb/, "NAME").gsub(/#<Proc:0x\h+[^>]*>/, "PROC")
    [values, configuration.hooks.names.sort, configuration.app.nil?]
  end
end
