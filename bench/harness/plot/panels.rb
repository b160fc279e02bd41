# frozen_string_literal: true

module Bench
  module Plot
    # Common parts of all plots: a title, and below it one panel for each shape with data. A subclass defines its
    # content (`title`, `cells`, `panel_height`) and draws one panel (`draw_panel`).
    class Panels
      WIDTH = 860
      LEFT = 140
      RIGHT = 700
      ROW = 26
      TITLE_HEIGHT = 44
      PANEL_TITLE = 26
      LABEL_GAP = 15

      def initialize(result)
        @result = result
        @panels = result.by_shape.filter_map do |shape, cells|
          shown = shown_cells(cells)
          [shape, shown] unless shown.empty?
        end
      end

      def draw
        return if @panels.empty?

        height = TITLE_HEIGHT + @panels.sum { |_, cells| PANEL_TITLE + panel_height(cells) } + 8
        @svg = Svg.new(WIDTH, height, "#{@result.basename}: #{title}")
        @svg.text(20, 30, "#{@result.basename}: #{title}", css: "title")
        @svg.text(WIDTH - 20, 30, direction, anchor: "end", css: "soft")
        draw_panels
        @svg.to_s
      end

      private

      def draw_panels
        y = TITLE_HEIGHT
        @panels.each do |shape, cells|
          @svg.text(20, y + 14, shape.to_s, css: "panel")
          draw_panel(shape, cells, y + PANEL_TITLE)
          y += PANEL_TITLE + panel_height(cells)
        end
      end

      # Writes the names of curves beside their ends (server => y), moved apart if they would overlap.
      def name_curves(ends, top, height)
        floor = top - LABEL_GAP
        room = top + height - LABEL_GAP * ends.size
        ends.sort_by(&:last).each_with_index do |(server, y), index|
          floor = [floor + LABEL_GAP, [y, room + LABEL_GAP * (index + 1)].min].max
          @svg.text(RIGHT + 10, floor + 4, server, css: server == "fairlead" ? "strong" : nil, fill: Palette.colour(server))
        end
      end

      def name_row(cell, baseline)
        @svg.text(LEFT - 10, baseline, cell.server, anchor: "end", css: cell.server == "fairlead" ? "strong" : nil)
      end
    end
  end
end
