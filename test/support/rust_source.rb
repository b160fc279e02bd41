# frozen_string_literal: true

module Fairlead
  module Test
    # The text of a Rust file, parsed as far as the tests of the architecture need it: the code without comments, strings and
    # test-only code, and the paths in it that begin at the crate.
    class RustSource
      BLOCK_COMMENT = %r{(?<block>/\*(?:[^*/]|\*(?!/)|/(?!\*)|\g<block>)*\*/)}
      # Lifetimes are not character literals: they have no closing quote.
      NO_CODE = %r{//[^\n]*|#{BLOCK_COMMENT}|\bb?r(?<hashes>\#*)".*?"\k<hashes>|"(?:\\.|[^"\\])*"|'(?:\\[^']+|\\'|[^'\\])'}m
      FOR_TESTS = /#\[cfg\((?:test\)|all\(test\b[^\]]*)\]/
      ATTRIBUTE = /\s*#\[[^\]]*\]/
      ITEM = /\s*(?:pub(?:\([^)]*\))?\s+)?(?:async|const|enum|extern|fn|impl|macro_rules!|mod|static|struct|trait|type|union|unsafe|use)\b/
      GROUP = /(?<group>\{(?:[^{}]|\g<group>)*\})/
      MODULE = /(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;/

      # +depth+: number of modules between the crate and the file.
      def initialize(text, depth: 1)
        @plain = text.gsub(NO_CODE) { |match| match.start_with?("/") ? " " : '""' }
        @depth = depth
      end

      def code
        @code ||= without_tests(@plain)
      end

      # Names of the test-only modules.
      def test_modules
        @plain.scan(/#{FOR_TESTS}#{ATTRIBUTE}*\s*#{MODULE}/).flatten
      end

      # Names that `pub use` takes from the crate's own modules, or from others: name => path.
      def reexports
        code.scan(/\bpub\s+use\s+([^;]+);/).flatten.flat_map { |tree| expand(tree) }.to_h do |path|
          path.sub(/\A(?:crate|self)::/, "").split(/\s+as\s+/).then { |from, as| [as || from.split("::").last, from] }
        end
      end

      # Returns "clock::milliseconds" for `crate::clock::milliseconds`, wherever it occurs, once each.
      def paths
        root = /\bcrate|(?<![:\w])(?:super\s*::\s*){#{@depth - 1}}super/
        starts = code.to_enum(:scan, /(?:#{root})\s*::\s*(?!super\b)/).map { Regexp.last_match.end(0) }
        starts.flat_map { |start| expand(tree_at(start)) }.uniq
      end

      private

      def without_tests(text)
        while (match = FOR_TESTS.match(text))
          text = match.pre_match + text[item_end(text, match.end(0))..]
        end
        text
      end

      # Returns the end of the item, field or argument at +from+, including further attributes.
      def item_end(text, from)
        from = text.match(/\G#{ATTRIBUTE}*/, from).end(0)
        item = text.match?(/\G#{ITEM}/, from)
        depth = 0
        from.upto(text.size - 1) do |at|
          case text[at]
          when "(", "[" then depth += 1
          when "{" then depth += 1
          when ")", "]", "}"
            return at if depth.zero?

            depth -= 1
            return at + 1 if depth.zero? && item && text[at] == "}" && !text.match?(/\G\s*;/, at + 1)
          when ";" then return at + 1 if depth.zero?
          when "," then return at + 1 if depth.zero? && !item
          end
        end
        text.size
      end

      # Returns a path, or a group of paths in braces.
      def tree_at(start)
        code.match(/\G(?:#{GROUP}|\w+(?:\s*::\s*\w+)*|\*)/, start).to_s
      end

      # Returns the paths of a use tree: "a::{b, c::d}" is "a::b" and "a::c::d".
      def expand(tree)
        tree = tree.strip.gsub(/\s*::\s*/, "::")
        head, brace, rest = tree.partition("{")
        return [head] if brace.empty?

        split(rest.delete_suffix("}")).flat_map { |branch| expand(branch) }.map { |path| head + path }
      end

      # Splits at the commas outside of braces.
      def split(branches)
        branches.to_enum(:scan, /(?:[^,{}]|#{GROUP})+/).map { Regexp.last_match[0].strip }.reject(&:empty?)
      end
    end
  end
end
