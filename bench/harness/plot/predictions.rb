# frozen_string_literal: true

require_relative "latencies"

module Bench
  module Plot
    # Latency by percentile, as the simulation predicts it (lines) and as the clients saw it (dots), on the axes of
    # Latencies. Servers without a model are left out.
    class Predictions < Latencies
      # Percentiles of the lines; the minimum counts as percentile 0.
      POINTS = [0, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9].freeze

      private

      def title
        "latency, measured and predicted"
      end

      def direction
        "milliseconds · lines: predicted · dots: measured"
      end

      def shown_cells(cells)
        cells.select { |cell| cell.measured? && cell.prediction && drawn(cell).size > 2 }
      end

      def drawn(cell)
        cell.curve(&:latency)
      end

      def draw_panel(_shape, cells, top)
        measured = cells.to_h { |cell| [cell.server, drawable(drawn(cell))] }
        predicted = cells.to_h { |cell| [cell.server, drawable(cell.prediction.curve(POINTS))] }
        scale(top, [*measured.values, *predicted.values])
        draw_axes
        predicted.each { |server, curve| draw_curve(server, curve) }
        measured.each { |server, curve| curve.each { |point, value| @svg.dot(x_of(point), y_of(value), 4, Palette.colour(server)) } }
        draw_names(predicted)
      end
    end
  end
end
