# frozen_string_literal: true

module Bench
  module Simulation
    # What the clients of one kind saw in several runs: as in a table of measurements, a figure is the median of the runs.
    class Prediction
      # runs: for each run its latencies and how long it lasted, all in seconds.
      def initialize(runs)
        @runs = runs.map { |latencies, seconds| [latencies.sort, seconds] }
        @answered = @runs.map(&:first).reject(&:empty?)
      end

      # Responses per second to all clients of the kind.
      def rate
        median(@runs.map { |latencies, seconds| latencies.size / seconds })
      end

      # Milliseconds, or nil when there was no response.
      def percentile(wanted)
        median(@answered.map { |latencies| latencies[[(latencies.size * wanted / 100.0).ceil - 1, 0].max] * 1000 })
      end

      # Percentile => milliseconds, as far as there were requests beyond it.
      def curve(points)
        fewest = @answered.map(&:size).min or return {}
        points.select { |point| (100 - point) * fewest >= 100 }.to_h { |point| [point, percentile(point)] }
      end

      private

      def median(values)
        values = values.sort
        (values[(values.size - 1) / 2] + values[values.size / 2]) / 2.0 unless values.empty?
      end
    end
  end
end
