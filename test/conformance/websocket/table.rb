# frozen_string_literal: true

module Autobahn
  # The table of docs/conformance.md: the number of cases with each result, by group and kind of compression.
  class Table
    DOCUMENT = File.expand_path("../../../docs/conformance.md", __dir__)
    BLOCK = %r{(?<=<!-- conformance:websocket -->\n).*?(?=<!-- /conformance -->)}m

    HEAD = "| group | what it tries | compression | cases | passed | informational | non-strict |\n" \
           "|--:|---|---|--:|--:|--:|--:|\n"

    GROUPS = {
      1 => "messages of all sizes", 2 => "ping and pong", 3 => "reserved bits", 4 => "opcodes", 5 => "fragments", 6 => "UTF-8",
      7 => "closing", 9 => "sizes up to 16 MiB, and speed", 10 => "automatic fragments",
      12 => "compressed messages", 13 => "parameters of the compression"
    }.freeze

    # Groups in which the client offers compression; in the others the server's choice makes no difference.
    COMPRESSED = [12, 13].freeze

    # The table in the document.
    def self.documented = File.read(DOCUMENT)[BLOCK]

    # +results+: lists of Result by the server's `--deflate`.
    def initialize(results)
      @results = results
    end

    def to_s = HEAD + rows.join

    # A row for each group and compression that has results.
    def rows
      @results.flat_map { |deflate, results| results.group_by(&:group).map { |group, some| [group, deflate, some] } }
              .sort_by.with_index { |(group, _), index| [group, index] }
              .map { |group, deflate, some| row(group, deflate, some) }
    end

    # Writes this table into the document.
    def document
      text = File.read(DOCUMENT)
      File.write(DOCUMENT, text.sub(BLOCK) { to_s })
    end

    private

    def row(group, deflate, results)
      counts = %i[passed informational non_strict].map { |verdict| results.count { |result| result.verdict == verdict } }
      compression = COMPRESSED.include?(group) ? "`#{deflate}`" : "none"
      "| #{[group, GROUPS.fetch(group), compression, results.size, *counts].join(" | ")} |\n"
    end
  end
end
