# frozen_string_literal: true

require "test_helper"
require "support/words"

# The wording of documents and comments, as CONTRIBUTING.md asks for it. Some wordings are permitted, but never more often
# than now: each figure may only fall.
class WordsTest < Minitest::Test
  include Fairlead::Test::Folders

  Words = Fairlead::Test::Words

  FOLDERS = {
    "README and docs" => %w[*.md docs/*.md docs/guides/*.md],
    "docs/decisions" => %w[docs/decisions/*.md],
    "lib" => %w[lib/**/*.rb],
    "ext" => %w[ext/**/*.{rb,rs}],
    "crates/engine" => %w[crates/engine/**/*.rs],
    "crates/wire" => %w[crates/wire/**/*.rs],
    "crates/supervisor" => %w[crates/supervisor/**/*.rs],
    "other crates" => %w[crates/{acme,load,shared-memory,tls-record}/**/*.rs],
    "test" => %w[test/**/*.rb]
  }.freeze

  # Folder => the highest permitted figures of Words: persons and pointers per 1,000 words, openings per 1,000 sentences of
  # documents or per 100 comments.
  PERMITTED = {
    "README and docs" => [0.2, 0.2, 0.4],
    "docs/decisions" => [0.0, 0.0, 0.0],
    "lib" => [0.0, 0.0, 0.0],
    "ext" => [0.0, 0.0, 0.1],
    "crates/engine" => [0.0, 0.0, 0.1],
    "crates/wire" => [0.0, 0.0, 0.1],
    "crates/supervisor" => [0.0, 0.0, 0.1],
    "other crates" => [0.0, 0.0, 0.0],
    "test" => [0.1, 0.0, 0.1]
  }.freeze

  # A figure that has fallen by more than this has to be lowered in the table.
  SLACK = 0.3
  LINES_SHOWN = 10

  FOLDERS.each do |folder, globs|
    define_method(:"test_the_wording_of_#{folder.tr("^a-zA-Z", "_")}_is_as_plain_as_permitted") do
      words = Words.new(ROOT, Dir.glob(globs, base: ROOT).sort)
      permitted = %i[persons pointers openings].zip(PERMITTED.fetch(folder)).to_h
      problems = permitted.filter_map { |figure, limit| worse(folder, words, figure, limit) || better(folder, words, figure, limit) }

      assert_operator words.words, :>, 1000, "#{folder}: too few words were found"
      assert(problems.empty?, problems.join("\n"))
    end
  end

  def test_words_for_an_unnamed_person_or_thing_are_counted_per_1000_words
    words = document("Whoever reads it, and whose it\nis: those\nthat read `whose`, the former and that of Ruby.")

    assert_in_delta 2000.0 / 17, words.persons
    assert_in_delta 3000.0 / 17, words.pointers
    assert_equal ["a.md:1: Whoever reads it, and whose it"] * 2, words.lines[:persons]
    assert_equal ["a.md:2: is: those", "a.md:3: that read `whose`, the former and that of Ruby."], words.lines[:pointers].uniq
  end

  def test_words_in_code_are_not_counted
    words = document("Text.\n\n```text\nwhoever whose\n```\n")

    assert_equal 1, words.words
    assert_equal 0, words.persons
  end

  def test_sentences_that_begin_with_what_are_counted_but_questions_are_not
    words = document(<<~MARKDOWN)
      # How this works

      What it does is simple. Is it? What does it do? Whether
      it works, nobody knows.

      - **What it costs.** How much is
        never said.

      | Whose it is | no sentence |
      |---|---|
      | 5 | two words |
    MARKDOWN

    # Six sentences: "Is it?" and the cells of two words are too short.
    assert_in_delta 5000.0 / 6, words.openings
    assert_equal %w[3 3 6 6 9], words.lines[:openings].map { |line| line[/\d+/] }
  end

  def test_comments_that_begin_with_what_are_counted_once_for_neighbouring_lines
    ruby = code("a.rb", <<~RUBY)
      # frozen_string_literal: true

      # What it is,
      # how it is.
      A = 1 # whether it is one
      b = "What \#{a}" # Counts it.
      # Why?
    RUBY

    assert_in_delta 100.0 / 4, ruby.openings
    assert_equal ["a.rb:3: What it is,"], ruby.lines[:openings]
  end

  def test_comments_of_rust_are_counted
    rust = code("a.rs", <<~RUST)
      //! What this file has.
      //!
      //! How it has it.

      /// Returns whatever it has.
      fn a() {} // How it has it.
    RUST

    assert_in_delta 200.0 / 3, rust.openings
    assert_equal ["a.rs:1: What this file has.", "a.rs:6: How it has it."], rust.lines[:openings]
  end

  private

  def document(text) = code("a.md", text)

  # The words of a file that has only this text; they are read before the file is gone.
  def code(path, text)
    in_folder(path => text) { |folder| Words.new(folder, [path]) }
  end

  def worse(folder, words, figure, limit)
    value = words.public_send(figure)
    return if value <= limit

    "#{folder}, #{figure}: #{value.round(2)}, more than #{limit}. The worst lines:\n#{worst(words.lines[figure]).join("\n")}"
  end

  # The lines with the most hits first.
  def worst(lines) = lines.tally.sort_by { |_, hits| -hits }.first(LINES_SHOWN).map(&:first)

  def better(folder, words, figure, limit)
    value = words.public_send(figure)
    "lower the figure in the table: #{folder}, #{figure}, #{limit} to #{value.ceil(1)}" if value < limit - SLACK
  end
end
