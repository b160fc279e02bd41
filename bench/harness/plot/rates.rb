# frozen_string_literal: true

module Bench
  module Plot
    # Requests per second: a bar up to the median, a line from the minimum to the maximum of the rounds.
    class Rates < Panels
      private

      def title
        "#{@result.scenario.drive.units[:many]} per second"
      end

      def direction
        "longer is better · bar: median, line: min–max of the rounds"
      end

      def shown_cells(cells)
        cells.select(&:measured?).sort_by { |cell| -cell.rate }
      end

      def panel_height(cells)
        cells.size * ROW + 16
      end

      def draw_panel(shape, cells, top)
        best = @result.scenario.best_rate(shape)
        most = [*cells.map { |cell| cell.rates.last }, *best].max
        cells.each_with_index { |cell, index| draw_row(cell, top + index * ROW, (RIGHT - LEFT) / most) }
        draw_best(best, LEFT + best * (RIGHT - LEFT) / most, top, cells.size) if best
      end

      def draw_row(cell, top, scale)
        name_row(cell, top + 16)
        @svg.bar(LEFT, top + 3, cell.rate * scale, ROW - 8, Palette.colour(cell.server), opacity: Palette.opacity(cell.server))
        low, high = cell.rates.map { |rate| LEFT + rate * scale }
        middle = top + 3 + (ROW - 8) / 2.0
        @svg.line(low, middle, high, middle, "spread") if high - low > 1
        @svg.text([high, LEFT + 2].max + 8, top + 16, Report.number(cell.rate), css: cell.server == "fairlead" ? "strong" : nil)
      end

      def draw_best(best, x, top, rows)
        @svg.line(x, top - 4, x, top + rows * ROW, "mark")
        @svg.text(x, top - 8, "best possible #{Report.number(best)}", anchor: "end", css: "soft")
      end
    end
  end
end
