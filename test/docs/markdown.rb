# frozen_string_literal: true

module Fairlead
  module Test
    # One Markdown file of the checkout: its links, headings, code and prose, by line, for the tests of the documentation.
    # Supports the Markdown of these documents, not all of it.
    class Markdown
      Code = Struct.new(:line, :language, :marks, :text)
      Link = Struct.new(:line, :target)

      FENCE = /\A\s*```\s*(\S*)\s*(.*?)\s*\z/
      LINK = /(?<!\\)\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/
      REFERENCE = /\A\[[^\]]+\]:\s*(\S+)/
      HEADING = /\A\#{1,6}\s+(.*?)\s*#*\s*\z/

      attr_reader :path, :code, :links, :anchors, :prose

      # Returns all documents, except generated and third-party ones.
      def self.all(root)
        paths = Dir.glob("**/*.md", base: root).reject { |path| path.match?(%r{\A(?:target|tmp|fuzz/target)/|/node_modules/}) }
        paths.sort.map { |path| new(root, path) }
      end

      def initialize(root, path)
        @path = path
        @code = []
        @links = []
        @anchors = []
        @prose = []
        outside_code(File.readlines(File.join(root, path), chomp: true)) { |line, number| read(line, number) }
      end

      private

      # Yields the lines outside code and collects the code.
      def outside_code(lines)
        open = nil
        lines.each.with_index(1) do |line, number|
          fence = FENCE.match(line)
          if open.nil? && fence
            open = Code.new(number, fence[1], fence[2].split, +"")
          elsif open && fence
            @code << open
            open = nil
          elsif open
            open.text << line << "\n"
          else
            yield line, number
          end
        end
      end

      def read(line, number)
        @prose << [line, number]
        text = line.gsub(/`[^`]*`/, "")
        (text.scan(LINK) + text.scan(REFERENCE)).flatten.each { |target| @links << Link.new(number, target) }
        @anchors << anchor(HEADING.match(line)[1]) if HEADING.match?(line)
      end

      # Anchor of a heading, like GitHub's: lower case, spaces to hyphens, a number for a repeated name.
      def anchor(heading)
        name = heading.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1').downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-")
        taken = @anchors.count { |other| other == name || other.match?(/\A#{Regexp.escape(name)}-\d+\z/) }
        taken.zero? ? name : "#{name}-#{taken}"
      end
    end
  end
end
