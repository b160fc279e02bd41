# frozen_string_literal: true

require "test_helper"

class OptionDocumentationTest < Minitest::Test
  def test_the_file_is_what_the_table_says
    assert_equal Fairlead::Options::Documentation.markdown, File.read(File.join(ROOT, "docs/configuration.md")),
                 "docs/configuration.md is out of date: rake docs:configuration"
  end

  def test_every_option_and_every_hook_has_its_place
    markdown = Fairlead::Options::Documentation.markdown

    Fairlead::Options.each { |entry| assert_includes markdown, "\n### #{entry.name}\n" }
    Fairlead::Hooks::NAMES.each { |name, place| assert_match(/^\| `#{name}`.*\| #{Regexp.escape(place)} \|$/, markdown) }
  end
end
