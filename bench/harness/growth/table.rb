# frozen_string_literal: true

module Bench
  module Growth
    # The table of a page: a row for each operation and server, a column for each number of things.
    class Table
      # An exponent above this is a growth that needs an explanation.
      CONSTANT = 0.1

      def initialize(counts, cells)
        @counts = counts
        @cells = cells.select(&:measured?)
      end

      def headings
        ["operation", "server", *@counts.map { |count| "n = #{Report.number(count)}" }, "exponent", "for each further one"]
      end

      def rows
        figures = @cells.to_h { |cell| [cell, Figure.of(cell)] }
        names = figures.values.flatten.map(&:name).uniq
        names.flat_map do |name|
          figures.filter_map { |cell, all| all.find { |figure| figure.name == name }&.then { |figure| row(cell, figure) } }
        end
      end

      # Numbers that a server could not do.
      def remarks
        @cells.flat_map do |cell|
          cell.measurements.flat_map { |found| found.errors.keys }.uniq.map { |error| "- #{cell.server}: #{error}" }
        end
      end

      private

      def row(cell, figure)
        values = @counts.map { |count| Report.number(figure.values[count]) }
        each_more, unit = figure.for_each_more
        [figure.name, cell.server, *values, exponent(figure), each_more ? "#{Report.number(each_more)} #{unit}" : "–"]
      end

      def exponent(figure)
        found = figure.exponent or return "–"
        text = format("%.2f", found).sub(/\A-(0\.00)\z/, '\1')
        found > CONSTANT ? "**#{text}**" : text
      end
    end
  end
end
