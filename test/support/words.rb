# frozen_string_literal: true

require_relative "../docs/markdown"

module Fairlead
  module Test
    # Counts wordings that hide a noun: `whose` and `whoever`; `those that` and `that of`; and sentences of
    # documents, and comments, that begin with `What` or `Whether`. Code in backticks and in fences is left out.
    #
    # The rules are in CONTRIBUTING.md. This class knows words, not grammar: a question is recognized by its question mark.
    class Words
      # A paragraph, list item or table row of a document, or neighbouring lines of comment.
      Block = Struct.new(:path, :line, :text) do
        # The text with a word in place of each code in backticks.
        def plain = @plain ||= text.gsub(QUOTED, "code")

        # Returns the line of each match, with path and number.
        def scan(pattern)
          plain.to_enum(:scan, pattern).map { line_at(Regexp.last_match.begin(0)) }
        end

        # The line at an offset of the plain text.
        def line_at(offset)
          number = plain[0, offset].count("\n")
          "#{path}:#{line + number}: #{text.lines[number].strip}"
        end
      end

      PERSON = /\b(?:whoever|whomever|whom|whose)\b/i
      POINTER = /\b(?:that\s+of|those\s+that|those\s+of|the\s+former)\b/i
      OPENING = /\A[^\p{Word}]*(?:What|Whatever|Whichever|Whether|How|Whose|Whoever)\b/
      WORD = /\p{Alpha}[\p{Word}’'-]*/
      QUOTED = /`[^`\n]*`/

      # A sentence ends before white space, and the next one does not begin in lower case. Cells of a table are sentences.
      SENTENCE_END = /(?<=[.!?])[*"”')\]]*\s+(?=[^\p{Lower}\s])|\s*(?<!\\)\|\s*/
      SHORTEST_SENTENCE = 3

      # Lines of Markdown that begin a block, or are one.
      ITEM = /\A\s*(?:[-*+]|\d+\.)\s+/
      ROW = /\A\s*\|/
      HEADING = /\A\#{1,6}\s/
      RULE = /\A[\s|:-]*\z/

      # Whole lines, then comments behind code. Instructions to Ruby and RuboCop are no comments.
      COMMENT = { ".rb" => /\A\s*#(?!!)\s?(.*)/, ".rs" => %r{\A\s*//[/!]?\s?(.*)} }.freeze
      TRAILING = { ".rb" => /\S\s+#\s(.*)/, ".rs" => %r{\S\s+//\s(.*)} }.freeze
      INSTRUCTION = /\A\s*#\s*(?:frozen_string_literal:|rubocop:)/

      # +paths+: files below +root+, all of them documents or all of them code.
      def initialize(root, paths)
        @documents, @code = paths.partition { |path| path.end_with?(".md") }
        @documents.map! { |path| Markdown.new(root, path) }
        @code.map! { |path| [path, File.readlines(File.join(root, path), chomp: true)] }
      end

      # Uses of `whose` and the like, per 1,000 words.
      def persons = share(1000, found(PERSON).size, words)

      # Uses of `those that` and the like, per 1,000 words.
      def pointers = share(1000, found(POINTER).size, words)

      # Sentences of documents per 1,000, or comments per 100, that begin with `What` and the like.
      def openings
        @documents.any? ? share(1000, found_openings.size, sentences.size) : share(100, found_openings.size, blocks.size)
      end

      # The lines that each figure counts, with path and number: figure => lines.
      def lines
        { persons: found(PERSON), pointers: found(POINTER), openings: found_openings }
      end

      def words = @words ||= blocks.sum { |block| block.plain.scan(WORD).size }

      private

      def share(whole, part, total) = total.zero? ? 0.0 : part.fdiv(total) * whole

      def found(pattern) = blocks.flat_map { |block| block.scan(pattern) }

      def found_openings
        candidates = @documents.any? ? sentences : blocks.map { |block| [block, 0, block.plain] }
        candidates.select { |_, _, text| text.match?(OPENING) && !text.match?(/\?\W*\z/) }.map { |block, offset, _| block.line_at(offset) }
      end

      # [block, offset in its text, sentence]
      def sentences
        @sentences ||= blocks.reject { |block| block.plain.match?(HEADING) }.flat_map { |block| sentences_of(block) }
      end

      def sentences_of(block)
        starts = [0, *block.plain.to_enum(:scan, SENTENCE_END).map { Regexp.last_match.end(0) }]
        sentences = starts.zip(starts.drop(1)).map { |from, following| [block, from, block.plain[from...following]] }
        sentences.select { |_, _, text| text.scan(WORD).size >= SHORTEST_SENTENCE }
      end

      def blocks
        @blocks ||= @documents.flat_map { |document| paragraphs(document) } + @code.flat_map { |path, lines| comments(path, lines) }
      end

      def paragraphs(document)
        collect(document.path, document.prose) do |line|
          next if line.match?(RULE)

          [line.match?(/#{ITEM}|#{ROW}|#{HEADING}/), line.gsub(/\]\([^)\s]*\)/, "]")]
        end
      end

      def comments(path, lines)
        whole = COMMENT.fetch(File.extname(path))
        trailing = TRAILING.fetch(File.extname(path))
        lines = lines.each.with_index(1)
        collect(path, lines) { |line| [false, line[whole, 1]] if line.match?(whole) && !line.match?(INSTRUCTION) } +
          lines.filter_map { |line, number| Block.new(path, number, line[trailing, 1]) if !line.match?(whole) && line.match?(trailing) }
      end

      # Blocks of neighbouring lines. The given block returns whether a line begins a new one, and its text; nil between them.
      def collect(path, lines)
        blocks = []
        last = nil
        lines.each do |line, number|
          first, text = yield(line)
          next unless text

          if first || last != number - 1
            blocks << Block.new(path, number, +text)
          else
            blocks.last.text << "\n" << text
          end
          last = number
        end
        blocks
      end
    end
  end
end
