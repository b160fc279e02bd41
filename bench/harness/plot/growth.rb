# frozen_string_literal: true

module Bench
  module Plot
    # A panel for each operation: its value over the number of things (Drive::Growth). Both axes are logarithmic, so that a constant
    # operation is a level line and a linear one rises as steeply as the grid's diagonal.
    class Growth < Panels
      HEIGHT = 160
      # Powers of ten that a panel shows at least, so that noise looks like noise.
      LEAST_SPAN = 2

      # Each panel has an operation in place of a shape.
      def initialize(result)
        super
        @panels = @panels.flat_map do |shape, cells|
          figures = cells.to_h { |cell| [cell.server, Bench::Growth::Figure.of(cell)] }
          figures.values.flatten.map(&:name).uniq.filter_map do |name|
            curves = figures.transform_values { |all| all.find { |figure| figure.name == name }&.values&.select { |_, value| value.positive? } }
            curves = curves.reject { |_, values| values.nil? || values.empty? }
            ["#{name} · -w #{shape.workers} -t #{shape.threads}", curves] unless curves.empty?
          end
        end
      end

      private

      def title
        "growth with n"
      end

      def direction
        "level is constant · lower is better"
      end

      def shown_cells(cells)
        cells.select { |cell| cell.measured? && cell.measurements.all?(&:growth) }
      end

      def panel_height(_curves)
        HEIGHT + 42
      end

      def draw_panel(_title, curves, top)
        @top = top
        choose_axes(curves.values.flat_map(&:to_a))
        draw_axes
        curves.each do |server, values|
          points = values.map { |count, value| [x_of(count), y_of(value)] }
          @svg.curve(points, Palette.colour(server), width: server == "fairlead" ? 3 : 1.8, dashes: Palette.dashes(server))
          points.each { |x, y| @svg.dot(x, y, 2.5, Palette.colour(server)) }
        end
        name_curves(curves.transform_values { |values| y_of(values.values.last) }, top, HEIGHT)
      end

      def choose_axes(points)
        counts, values = points.transpose
        @counts = counts.uniq.sort
        @low = Math.log10(values.min).floor
        @high = [Math.log10(values.max).ceil, @low + LEAST_SPAN].max
      end

      def draw_axes
        @counts.each do |count|
          @svg.line(x_of(count), @top, x_of(count), @top + HEIGHT, "grid")
          @svg.text(x_of(count), @top + HEIGHT + 16, Report.number(count), anchor: "middle", css: "soft")
        end
        (@low..@high).each do |power|
          value = 10.0**power
          @svg.line(LEFT - 40, y_of(value), RIGHT, y_of(value), "grid")
          @svg.text(LEFT - 46, y_of(value) + 4, value < 1 ? value.to_s : Report.number(value), anchor: "end", css: "soft")
        end
      end

      def x_of(count)
        return LEFT - 40 if @counts.size < 2

        low = Math.log10(@counts.first)
        high = Math.log10(@counts.last)
        (LEFT - 40) + (Math.log10(count) - low) * (RIGHT - LEFT + 40) / (high - low)
      end

      def y_of(value) = @top + HEIGHT - (Math.log10(value) - @low) * HEIGHT / (@high - @low)
    end
  end
end
