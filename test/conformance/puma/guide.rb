# frozen_string_literal: true

module PumaAnswers
  # The tables of the migration guide that explain each difference. A row has the requests, the part of the response, and its
  # values with Puma and with Fairlead:
  #
  #   | `GET /`; `env…` | env rack.upgrade? | none (until Puma 5) | `false` | why |
  #
  # "…" stands for any rest. Parentheses limit the row to these versions of Puma or Rack.
  class Guide
    # A row about the requests of one name.
    Row = Struct.new(:request, :part, :puma, :fairlead, :reason) do
      # Returns true if the row explains this difference in this part of the response.
      def explains?(request, part, puma, fairlead)
        self.part == part && like?(self.request, request) && like?(self.puma, puma) && like?(self.fairlead, fairlead)
      end

      def to_s = "#{request}: #{part}: #{puma.inspect} with Puma, #{fairlead.inspect} with Fairlead"

      private

      # +pattern+: nil for a missing part.
      def like?(pattern, text)
        return pattern == text if pattern.nil? || text.nil?

        pattern.end_with?("…") ? text.start_with?(pattern.delete_suffix("…")) : pattern == text
      end
    end

    SECTION = /^## Answers\n.*?(?=^## |\z)/m
    LINE = /^\|(?!---| requests \|)(.*)\|$/
    CONDITION = /\((until|from) (Puma|Rack) (\d+)\)/
    ESCAPES = { "\\n" => "\n", "\\t" => "\t" }.freeze

    attr_reader :rows

    # +text+: the guide. +versions+: the major versions of Puma and Rack, by name.
    def initialize(text, versions)
      @versions = versions
      @rows = text[SECTION].scan(LINE).flatten.flat_map { |line| rows_of(line) }
    end

    # Returns the rows that explain a difference.
    def rows_for(...) = rows.select { |row| row.explains?(...) }

    private

    def rows_of(line)
      requests, part, puma, fairlead, reason = line.split("|").map(&:strip)
      return [] unless applies?(puma)

      requests.scan(/`(.+?)`/).flatten.map { |request| Row.new(request, part, value(puma), value(fairlead), reason) }
    end

    def applies?(cell)
      bound, program, major = cell.match(CONDITION)&.captures
      return true unless bound

      bound == "until" ? @versions.fetch(program) <= major.to_i : @versions.fetch(program) >= major.to_i
    end

    # Returns the text in backticks; nil for "none".
    def value(cell) = cell.start_with?("empty") ? "" : cell[/`(.*)`/, 1]&.gsub(/\\[nt]/, ESCAPES)
  end
end
