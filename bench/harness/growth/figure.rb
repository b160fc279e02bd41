# frozen_string_literal: true

module Bench
  module Growth
    # The values of one operation over the numbers of things: number => value.
    class Figure
      # Units of a value, and of what each further thing adds to it.
      SMALLER = {
        "µs" => ["ns", 1000.0], "MiB" => ["KiB", 1024.0], "s" => ["µs", 1e6], "ms" => ["µs", 1000.0], "1/s" => ["1/s", 1.0], "%" => ["%", 1.0]
      }.freeze

      attr_reader :name, :values

      # The figures of a cell (medians over the rounds), in the order measured.
      def self.of(cell)
        names = cell.measurements.flat_map { |found| found.growth.keys }.uniq
        names.map do |name|
          counts = cell.measurements.flat_map { |found| found.growth.fetch(name, {}).keys }.uniq.sort
          new(name, counts.to_h { |count| [count, cell.median { |found| found.growth.dig(name, count) }] })
        end
      end

      def initialize(name, values)
        @name = name
        @values = values
      end

      def unit = @name[/, (\S+)\z/, 1]

      # The power of n with which the value grows: the slope of a line through the logarithms of both. 0 is constant, 1 is linear. Nil
      # with fewer than two positive values.
      def exponent
        points = @values.select { |_, value| value.positive? }.map { |count, value| [Math.log(count), Math.log(value)] }
        return if points.size < 2

        mean_x, mean_y = points.transpose.map { |ones| ones.sum / ones.size }
        points.sum { |x, y| (x - mean_x) * (y - mean_y) } / points.sum { |x, _| (x - mean_x)**2 }
      end

      # The part of the value that each further thing adds, between the two largest numbers, with its unit; the cost of the server alone
      # is not in it. Nil with one value.
      def for_each_more
        (less, before), (more, after) = @values.to_a.last(2)
        return unless more

        unit, factor = SMALLER.fetch(self.unit)
        [(after - before) * factor / (more - less), unit]
      end
    end
  end
end
