# frozen_string_literal: true

module Fairlead
  module Test
    # The text of a Rust file, as far as the tests of the architecture have to understand it: its code without comments,
    # strings and what is compiled for tests only, and the paths in it that begin at the crate.
    class RustSource
      BLOCK_COMMENT = %r{(?<block>/\*(?:[^*/]|\*(?!/)|/(?!\*)|\g<block>)*\*/)}
      # Lifetimes are no characters: nothing closes them.
      NO_CODE = %r{//[^\n]*|#{BLOCK_COMMENT}|\bb?r(?<hashes>\#*)".*?"\k<hashes>|"(?:\\.|[^"\\])*"|'(?:\\[^']+|\\'|[^'\\])'}m
      FOR_TESTS = /#\[cfg\((?:test\)|all\(test\b[^\]]*)\]/
      ATTRIBUTE = /\s*#\[[^\]]*\]/
      ITEM = /\s*(?:pub(?:\([^)]*\))?\s+)?(?:async|const|enum|extern|fn|impl|macro_rules!|mod|static|struct|trait|type|union|unsafe|use)\b/
      GROUP = /(?<group>\{(?:[^{}]|\g<group>)*\})/
      MODULE = /(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;/

      # +depth+: how many modules the file is below its crate.
      def initialize(text, depth: 1)
        @plain = text.gsub(NO_CODE) { |match| match.start_with?("/") ? " " : '""' }
        @depth = depth
      end

      def code
        @code ||= without_tests(@plain)
      end

      # The names of the modules that are compiled for tests only.
      def test_modules
        @plain.scan(/#{FOR_TESTS}#{ATTRIBUTE}*\s*#{MODULE}/).flatten
      end

      # What `pub use` takes from the crate's own modules, or from others: name => path.
      def reexports
        code.scan(/\bpub\s+use\s+([^;]+);/).flatten.flat_map { |tree| expand(tree) }.to_h do |path|
          path.sub(/\A(?:crate|self)::/, "").split(/\s+as\s+/).then { |from, as| [as || from.split("::").last, from] }
        end
      end

      # "clock::milliseconds" for `crate::clock::milliseconds`, wherever it stands, once each.
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

      # Where the item, field or argument ends that stands at +from+, behind further attributes.
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

      # A path, or a group of them in braces.
      def tree_at(start)
        code.match(/\G(?:#{GROUP}|\w+(?:\s*::\s*\w+)*|\*)/, start).to_s
      end

      # The paths of a use tree: "a::{b, c::d}" is "a::b" and "a::c::d".
      def expand(tree)
        tree = tree.strip.gsub(/\s*::\s*/, "::")
        head, brace, rest = tree.partition("{")
        return [head] if brace.empty?

        split(rest.delete_suffix("}")).flat_map { |branch| expand(branch) }.map { |path| head + path }
      end

      # At the commas that are in no braces.
      def split(branches)
        branches.to_enum(:scan, /(?:[^,{}]|#{GROUP})+/).map { Regexp.last_match[0].strip }.reject(&:empty?)
      end
    end
  end
end
