# frozen_string_literal: true

module Bench
  module Plot
    # Latency by percentile, both axes logarithmic: from mark to mark (90, 99, 99.9) a tenth as many requests are beyond
    # it.
    class Latencies < Panels
      HEIGHT = 240
      MARKS = [0, 50, 90, 99, 99.9, 99.99].freeze
      STEPS = [1, 2, 5].freeze

      private

      def title
        "latency by percentile#{", corrected" if @result.corrected?}"
      end

      def direction
        "lower is better · milliseconds"
      end

      def shown_cells(cells)
        cells.select { |cell| cell.measured? && cell.curve.size > 2 }
      end

      def panel_height(_cells)
        HEIGHT + 42
      end

      def draw_panel(_shape, cells, top)
        curves = cells.to_h { |cell| [cell.server, drawable(cell.curve)] }
        scale(top, curves.values)
        draw_axes
        curves.each { |server, curve| draw_curve(server, curve) }
        draw_names(curves)
      end

      # Scales the axes so that all curves fit.
      def scale(top, curves)
        values = curves.flat_map(&:values)
        @low = decade(values.min, :floor)
        @high = decade(values.max, :ceil)
        @top = top
        @rightmost = curves.flat_map(&:keys).max
      end

      # A logarithm has no value for 0 ms.
      def drawable(curve)
        curve.select { |point, _| point <= MARKS.last }.transform_values { |value| [value, 0.001].max }
      end

      # The nearest 1, 2 or 5 times a power of ten below or above.
      def decade(value, direction)
        power = 10.0**Math.log10(value).floor
        steps = [*STEPS, 10].map { |step| step * power }
        direction == :floor ? steps.select { |step| step <= value * 1.0001 }.last : steps.find { |step| step >= value * 0.9999 }
      end

      def draw_axes
        MARKS.select { |mark| mark <= @rightmost }.each do |mark|
          @svg.line(x_of(mark), @top, x_of(mark), @top + HEIGHT, "grid")
          @svg.text(x_of(mark), @top + HEIGHT + 16, mark.zero? ? "fastest" : "#{mark} %", anchor: "middle", css: "soft")
        end
        levels.each do |level|
          @svg.line(LEFT - 40, y_of(level), RIGHT, y_of(level), "grid")
          @svg.text(LEFT - 46, y_of(level) + 4, level < 1 ? format("%g", level) : Report.number(level), anchor: "end", css: "soft")
        end
      end

      def levels
        powers = (Math.log10(@low).floor..Math.log10(@high).ceil).map { |power| 10.0**power }
        found = powers.flat_map { |power| STEPS.map { |step| step * power } }.select { |level| level.between?(@low * 0.999, @high * 1.001) }
        found.size > 8 ? found.select { |level| (Math.log10(level) % 1).abs < 1e-6 } : found
      end

      def draw_curve(server, curve)
        points = curve.map { |point, value| [x_of(point), y_of(value)] }
        @svg.curve(points, Palette.colour(server), width: server == "fairlead" ? 3 : 1.8, dashes: Palette.dashes(server))
      end

      def draw_names(curves) = name_curves(curves.transform_values { |curve| y_of(curve.values.last) }, @top, HEIGHT)

      def x_of(percentile)
        (LEFT - 40) + nines(percentile) / nines(@rightmost) * (RIGHT - LEFT + 40)
      end

      # 0.3 for the median, 1 for the 90th percentile, 2 for the 99th.
      def nines(percentile)
        -Math.log10(1 - percentile / 100.0)
      end

      def y_of(value)
        @top + HEIGHT - Math.log(value / @low) / Math.log(@high / @low) * HEIGHT
      end
    end
  end
end
