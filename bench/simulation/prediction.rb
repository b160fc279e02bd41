# frozen_string_literal: true

module Bench
  module Simulation
    # Results of one kind of clients in several runs: as in a table of measurements, each value is the median of the
    # runs.
    class Prediction
      # runs: the latencies and the duration of each run, all in seconds.
      def initialize(runs)
        @runs = runs.map { |latencies, seconds| [latencies.sort, seconds] }
        @answered = @runs.map(&:first).reject(&:empty?)
      end

      # Responses per second to all clients of the kind.
      def rate
        median(@runs.map { |latencies, seconds| latencies.size / seconds })
      end

      # Milliseconds, or nil without a response.
      def percentile(wanted)
        median(@answered.map { |latencies| latencies[[(latencies.size * wanted / 100.0).ceil - 1, 0].max] * 1000 })
      end

      # Percentile => milliseconds, up to the last percentile that has requests beyond it.
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
