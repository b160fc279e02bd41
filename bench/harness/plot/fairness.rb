# frozen_string_literal: true

module Bench
  module Plot
    # Requests of each connection: a dot for every connection of every round, at its share of an even split. All dots on
    # the middle line: all were served alike. A dot at 0: that connection was not served.
    class Fairness < Panels
      private

      def title
        "#{@result.scenario.drive.units[:many]} of each connection"
      end

      def direction
        "closer to 1 is fairer · 1 = an even share"
      end

      def shown_cells(cells)
        cells.reject { |cell| cell.server == "native" || cell.shares.empty? }.sort_by { |cell| -cell.median(&:least_over_most).to_f }
      end

      def panel_height(cells)
        cells.size * ROW + 34
      end

      def draw_panel(_shape, cells, top)
        most = [2.0, cells.flat_map(&:shares).max.ceil(1)].max
        bottom = top + cells.size * ROW
        ticks(most).each { |share| draw_tick(share, most, top, bottom) }
        cells.each_with_index { |cell, index| draw_row(cell, top + index * ROW, most) }
        @svg.text(RIGHT + 20, top - 10, "least/most", css: "soft")
      end

      def ticks(most)
        step = most > 5 ? (most / 5).ceil : 0.5
        (0..(most / step).floor).map { |index| index * step }
      end

      def draw_tick(share, most, top, bottom)
        x = position(share, most)
        @svg.line(x, top, x, bottom, share == 1 ? "mark" : "grid")
        @svg.text(x, bottom + 15, Report.number(share.to_f), anchor: "middle", css: "soft")
      end

      def draw_row(cell, top, most)
        name_row(cell, top + 17)
        cell.shares.each { |share| @svg.dot(position(share, most), top + ROW / 2, 4.5, Palette.colour(cell.server), opacity: 0.5) }
        @svg.text(RIGHT + 20, top + 17, Report.ratio(cell.median(&:least_over_most)), css: cell.server == "fairlead" ? "strong" : nil)
      end

      def position(share, most)
        LEFT + share * (RIGHT - LEFT) / most
      end
    end
  end
end
