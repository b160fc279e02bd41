# frozen_string_literal: true

module Bench
  module Plot
    # Memory of each server after the steps of Drive::Memory, which are equally far apart.
    class Memory < Panels
      HEIGHT = 220
      LEVELS = 4

      private

      def title
        "PSS of all processes"
      end

      def direction
        "lower is better · MiB"
      end

      def shown_cells(cells)
        cells.select { |cell| cell.measured? && cell.measurements.all?(&:pss) }
      end

      def panel_height(_cells)
        HEIGHT + 42
      end

      def draw_panel(_shape, cells, top)
        @top = top
        @steps = cells.first.measurements.first.pss.keys
        curves = cells.to_h { |cell| [cell.server, @steps.map { |step| cell.median { |found| found.pss_after(step) } }] }
        @unit = round_up(curves.values.flatten.max / LEVELS)
        draw_axes
        curves.each { |server, values| draw_curve(server, values) }
        name_curves(curves.transform_values { |values| y_of(values.last) }, top, HEIGHT)
      end

      # The next 1, 2 or 5 times a power of ten.
      def round_up(value)
        power = 10.0**Math.log10(value).floor
        [1, 2, 5, 10].map { |factor| factor * power }.find { |unit| unit >= value }
      end

      def draw_axes
        @steps.each_with_index do |step, index|
          @svg.line(x_of(index), @top, x_of(index), @top + HEIGHT, "grid")
          @svg.text(x_of(index), @top + HEIGHT + 16, "#{Report.number(step)} requests", anchor: "middle", css: "soft")
        end
        (0..LEVELS).each do |level|
          @svg.line(LEFT - 40, y_of(level * @unit), RIGHT, y_of(level * @unit), "grid")
          @svg.text(LEFT - 46, y_of(level * @unit) + 4, Report.number(level * @unit), anchor: "end", css: "soft")
        end
      end

      def draw_curve(server, values)
        points = values.each_with_index.map { |value, index| [x_of(index), y_of(value)] }
        @svg.curve(points, Palette.colour(server), width: server == "fairlead" ? 3 : 1.8, dashes: Palette.dashes(server))
      end

      def x_of(index) = (LEFT - 40) + index * (RIGHT - LEFT + 40).fdiv([@steps.size - 1, 1].max)

      def y_of(value) = @top + HEIGHT - value * HEIGHT / (LEVELS * @unit)
    end
  end
end
