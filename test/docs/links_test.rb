# frozen_string_literal: true

require "test_helper"
require_relative "markdown"

# Links between the documents, and files of this checkout that the documents name.
class LinksTest < Minitest::Test
  Markdown = Fairlead::Test::Markdown
  FOLDERS = %w[bench bin crates docs examples exe ext fuzz lib sig test .ci].freeze
  PLACEHOLDER = %r{/[A-Z_]+(?:/|\z)}

  def documents
    @documents ||= Markdown.all(ROOT)
  end

  def test_every_relative_link_leads_to_a_file_and_a_heading
    broken = documents.flat_map do |document|
      document.links.reject { |link| leads_somewhere?(document, link.target) }
              .map { |link| "#{document.path}:#{link.line}: #{link.target}" }
    end

    assert_empty broken
  end

  def test_every_path_in_backticks_exists
    named = %r{`((?:#{FOLDERS.map { |folder| Regexp.escape(folder) }.join("|")})/[\w./-]+)`}
    missing = documents.flat_map do |document|
      File.read(File.join(ROOT, document.path)).scan(named).flatten.uniq
          .reject { |path| File.exist?(File.join(ROOT, path)) || built?(path) || path.match?(PLACEHOLDER) }
          .map { |path| "#{document.path}: #{path}" }
    end

    assert_empty missing
  end

  private

  def leads_somewhere?(document, target)
    return true if target.match?(/\A[a-z][a-z0-9+.-]*:/)

    path, anchor = target.split("#", 2)
    path = path.empty? ? document.path : File.join(File.dirname(document.path), path)
    return false unless File.exist?(File.join(ROOT, path))

    anchor.nil? || anchors(path).include?(anchor)
  end

  def anchors(path)
    @anchors ||= {}
    @anchors[path] ||= path.end_with?(".md") ? Markdown.new(ROOT, path).anchors : []
  end

  def built?(path)
    path.match?(/\.(?:so|bundle)\z/)
  end
end
