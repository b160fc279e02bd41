# frozen_string_literal: true

require "test_helper"

# docs/guides/embedding.md lists the options that apply in a program, besides the engine's options.
class EmbeddingDocumentTest < Minitest::Test
  LIST = /<!-- embedded options -->\n(.*)<!-- end -->/m

  # Two of them are short for others.
  SHORTHANDS = { port: [:bind], threads: %i[min_threads max_threads] }.freeze

  def test_the_list_is_complete
    listed = File.read(File.join(ROOT, "docs/guides/embedding.md"))[LIST, 1].scan(/`(\w+)`/).flatten.map(&:to_sym)
    options = Fairlead::Options.settings.select { |option| option.embedded? && !option.engine? }.map(&:name)

    assert_equal options.sort, (listed - SHORTHANDS.keys).sort
  end
end
