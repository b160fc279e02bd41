# frozen_string_literal: true

require "test_helper"
require_relative "../../rakelib/docs/configuration_reference"

class ConfigurationReferenceTest < Minitest::Test
  def test_the_file_is_what_the_table_says
    assert_equal Docs::ConfigurationReference.markdown, File.read(File.join(ROOT, "docs/guides/configuration.md")),
                 "docs/guides/configuration.md is out of date: rake docs:configuration"
  end

  def test_every_option_and_every_hook_has_its_place
    markdown = Docs::ConfigurationReference.markdown

    Fairlead::Options.each { |entry| assert_includes markdown, "\n### #{entry.name}\n" }
    Fairlead::Hooks::NAMES.each { |name, place| assert_match(/^\| `#{name}`.*\| #{Regexp.escape(place)} \|$/, markdown) }
  end
end
