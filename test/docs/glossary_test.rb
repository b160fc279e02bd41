# frozen_string_literal: true

require "test_helper"

# docs/glossary.md stays short: a reader of the code has to learn its terms first.
class GlossaryTest < Minitest::Test
  MOST = 40

  def test_it_has_few_terms_and_each_has_one_row
    rows = File.readlines(File.join(ROOT, "docs/glossary.md")).grep(/^\| (?!term)/)
    terms = rows.flat_map { |row| row.split("|")[1].split(",").map(&:strip) }

    assert_operator terms.size, :>, 20
    assert_operator terms.size, :<=, MOST
    assert_equal terms.uniq, terms
  end
end
