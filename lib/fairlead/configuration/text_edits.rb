# frozen_string_literal: true

module Fairlead
  class Configuration
    # Changes to a text of Ruby at the places of its syntax tree. They are collected, and made all at once.
    class TextEdits
      # Where a node starts: line (from 1) and column in bytes.
      def self.start(node) = [node.first_lineno, node.first_column]

      def initialize(text)
        @encoding = text.encoding
        @lines = text.b.lines(chomp: true)
        @replacements = []
        @insertions = Hash.new { |lines, number| lines[number] = [] }
        @comments = {}
      end

      def lines = @lines.map { |line| decode(line) }

      # The text of a node that is on one line.
      def of(node) = decode(@lines[node.first_lineno - 1].byteslice(node.first_column...node.last_column))

      # Replaces a node that is on one line.
      def replace(node, text)
        @replacements << [node.first_lineno, node.first_column...node.last_column, text]
      end

      # Replaces the name at the start of a call.
      def replace_name(node, name, text)
        @replacements << [node.first_lineno, node.first_column...(node.first_column + name.to_s.bytesize), text.to_s]
      end

      # Inserts lines above line +number+, indented like the line of +like+.
      def insert_before(number, lines, like: nil)
        indentation = like ? @lines[like.first_lineno - 1][/\A\s*/] : ""
        @insertions[number].concat(lines.map { |line| line.empty? ? line : indentation + line })
      end

      # Turns the lines of a statement into comments, below +reason+. If the lines contain other code, only puts the reason
      # above them. Returns true if they are comments.
      def comment_out(node, reason)
        insert_before(node.first_lineno, reason, like: node)
        alone = alone?(node)
        (node.first_lineno..node.last_lineno).each { |number| @comments[number] = node.first_column } if alone
        alone
      end

      def to_s
        lines = @lines.map(&:dup)
        replace_all(lines)
        @comments.each { |number, column| comment(lines[number - 1], column) }
        lines = lines.each_with_index.flat_map { |line, index| [*@insertions.fetch(index + 1, []), line] }
        decode("#{lines.map(&:b).join("\n")}\n")
      end

      private

      # Works from right to left, so that the columns stay correct.
      def replace_all(lines)
        @replacements.sort_by { |number, range, _| [number, -range.begin] }.each do |number, range, text|
          lines[number - 1][range] = text.b
        end
      end

      # A line that is less indented than the statement is part of a heredoc.
      def comment(line, column)
        line.insert([column, line[/\A\s*/].length].min, line.strip.empty? ? "#" : "# ")
      end

      def alone?(node)
        before = @lines[node.first_lineno - 1].byteslice(0, node.first_column)
        after = @lines[node.last_lineno - 1].byteslice(node.last_column..)
        before.strip.empty? && after.match?(/\A\s*(?:#.*)?\z/n)
      end

      def decode(bytes) = bytes.dup.force_encoding(@encoding)
    end
  end
end
