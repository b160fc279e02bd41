# frozen_string_literal: true

module Bench
  module Plot
    # Two latencies of each server in the first shape, as bars in a narrow drawing that fits beside another one on a
    # page and on a phone. References are left out; the headline is the scenario's.
    class Summary
      WIDTH = 400
      MARGIN = 20
      LEFT = 132
      LONGEST = 190
      ROW = 24
      BAR = 14
      TOP = 76
      PANEL_TITLE = 24
      GAP = 10

      def initialize(result)
        @result = result
        @headline = result.scenario.headline
        @shape, cells = result.by_shape.first
        @cells = cells.to_a.select { |cell| cell.measured? && !Palette::REFERENCES.include?(cell.server) }
      end

      def draw
        return if @headline.nil? || @cells.empty?

        @svg = Svg.new(WIDTH, TOP + @headline.percentiles.size * panel_height + 24, "#{title}, milliseconds: #{spoken}")
        draw_heading
        @headline.percentiles.each_with_index { |percentile, index| draw_panel(percentile, TOP + index * panel_height) }
        @svg.text(MARGIN, TOP + @headline.percentiles.size * panel_height + 8, "milliseconds · shorter is better", css: "soft")
        @svg.to_s
      end

      private

      def draw_heading
        @svg.text(MARGIN, 30, title, css: "title")
        @svg.text(MARGIN, 50, @headline.text, css: "soft")
        @svg.text(MARGIN, 66, setting, css: "soft")
      end

      def draw_panel(percentile, top)
        @svg.text(MARGIN, top + 18, "#{share(percentile)} of the responses within", css: "panel")
        @cells.each_with_index { |cell, index| draw_row(cell, percentile, top + PANEL_TITLE + index * ROW) }
      end

      def draw_row(cell, percentile, top)
        css = "strong" if cell.server == "fairlead"
        width = cell.percentile(percentile) * LONGEST / longest
        @svg.text(LEFT - 10, top + 16, name(cell), anchor: "end", css: css)
        @svg.bar(LEFT, top + (ROW - BAR) / 2, width, BAR, Palette.colour(cell.server))
        @svg.text(LEFT + [width, 1].max + 8, top + 16, Report.number(cell.percentile(percentile).round), css: css)
      end

      def panel_height = PANEL_TITLE + @cells.size * ROW + GAP

      def longest = @cells.flat_map { |cell| @headline.percentiles.map { |percentile| cell.percentile(percentile) } }.max

      def title = "#{@result.basename}: #{@headline.title}"

      def setting
        processes = @shape.single? ? "1 process" : "#{@shape.workers} workers"
        "#{@shape.connections} clients · #{processes} with #{@shape.threads} threads"
      end

      def name(cell) = "#{cell.server.capitalize} #{cell.version}"

      def share(percentile) = percentile == 50 ? "half" : "#{percentile} %"

      # The numbers, for readers who do not see the bars.
      def spoken
        @cells.map do |cell|
          figures = @headline.percentiles.map { |percentile| "#{share(percentile)} within #{cell.percentile(percentile).round}" }
          "#{name(cell)} #{figures.join(", ")}"
        end.join("; ")
      end
    end
  end
end
