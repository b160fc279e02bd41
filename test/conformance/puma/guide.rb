# frozen_string_literal: true

module PumaAnswers
  # The tables of the migration guide that explain each difference. A line says which requests it is about, which part of the
  # answer, and what that is with Puma and with Fairlead:
  #
  #   | `GET /`; `env…` | env rack.upgrade? | none (until Puma 5) | `false` | why |
  #
  # "…" stands for any rest. What is in parentheses limits the line to these versions of Puma or Rack.
  class Guide
    # What a line says about the requests of one name.
    Row = Struct.new(:request, :part, :puma, :fairlead, :reason) do
      # Whether the row explains that this part of the answer to this request differs so.
      def explains?(request, part, puma, fairlead)
        self.part == part && like?(self.request, request) && like?(self.puma, puma) && like?(self.fairlead, fairlead)
      end

      def to_s = "#{request}: #{part}: #{puma.inspect} with Puma, #{fairlead.inspect} with Fairlead"

      private

      # +pattern+: nil for a part that is not there.
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

    # +text+: the guide. +versions+: the major versions of Puma and Rack, by their names.
    def initialize(text, versions)
      @versions = versions
      @rows = text[SECTION].scan(LINE).flatten.flat_map { |line| rows_of(line) }
    end

    # The rows that explain one difference.
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

    # What is in backticks; nil for "none".
    def value(cell) = cell.start_with?("empty") ? "" : cell[/`(.*)`/, 1]&.gsub(/\\[nt]/, ESCAPES)
  end
end
