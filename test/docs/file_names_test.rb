# frozen_string_literal: true

require "test_helper"
require_relative "markdown"

# Files and folders in the documents about the code, often named without their parent folder: each must exist under that
# name. links_test.rb checks names with a full path in all documents.
class FileNamesTest < Minitest::Test
  DOCUMENTS = ["CONTRIBUTING.md", "docs/architecture.md", "docs/development.md", *Dir.glob("docs/decisions/*.md", base: ROOT)].freeze
  # A file by its extension, a folder by its slash.
  NAME = %r{[\w.-]+(?:/[\w.-]+)*(?:\.(?:bash|md|mjs|rake|rb|rbs|rs|toml|yml)|/)}
  QUOTED = /`(#{NAME})`/
  # Drawings and commands have no backticks.
  BARE = %r{(?<![\w.])(?:[\w-]+/)*[\w-]+\.(?:rb|rs)\b}
  # Folders in which a name without a path may be.
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

  # Files by path, folders with a slash at the end.
  def sources
    @sources ||= Dir.glob("{#{SOURCES.join(",")}}/**/*/", base: ROOT) + Dir.glob("{#{SOURCES.join(",")}}/**/*.*", base: ROOT)
  end
end
