# frozen_string_literal: true

require "test_helper"
require_relative "markdown"

# The files and folders that the documents about the code name, often without the folder that the text is about: each has
# to exist under that name. Those with their whole path are checked in all documents (links_test.rb).
class FileNamesTest < Minitest::Test
  DOCUMENTS = ["CONTRIBUTING.md", "docs/architecture.md", "docs/development.md", *Dir.glob("docs/decisions/*.md", base: ROOT)].freeze
  # A file by its extension, a folder by its slash.
  NAME = %r{[\w.-]+(?:/[\w.-]+)*(?:\.(?:bash|md|mjs|rake|rb|rbs|rs|toml|yml)|/)}
  QUOTED = /`(#{NAME})`/
  # In drawings and commands there are no backticks.
  BARE = %r{(?<![\w.])(?:[\w-]+/)*[\w-]+\.(?:rb|rs)\b}
  # Where a name may be that has no folder of the checkout before it.
  SOURCES = %w[crates examples ext lib].freeze

  def test_every_file_that_is_named_exists
    named = DOCUMENTS.flat_map { |document| names(document).map { |name| [document, name] } }

    assert_operator named.size, :>, 50
    assert_empty(named.reject { |_, name| exists?(name) }.map { |place| place.join(": ") })
  end

  private

  def names(path)
    blocks = Fairlead::Test::Markdown.new(ROOT, path).code.select { |code| %w[sh text].include?(code.language) }
    (File.read(File.join(ROOT, path)).scan(QUOTED).flatten + blocks.flat_map { |code| code.text.scan(BARE) }).uniq
  end

  def exists?(name)
    File.exist?(File.join(ROOT, name)) || sources.any? { |path| path.end_with?("/#{name}") }
  end

  # Files as they are, folders with a slash behind.
  def sources
    @sources ||= Dir.glob("{#{SOURCES.join(",")}}/**/*/", base: ROOT) + Dir.glob("{#{SOURCES.join(",")}}/**/*.*", base: ROOT)
  end
end
