# frozen_string_literal: true

module Bench
  # All measurements of one server in one shape, and their statistics for a table: medians over the rounds.
  Cell = Struct.new(:shape, :server, :version, :note, :measurements, :failures, keyword_init: true) do
    # The Scenario of the cell, set by its Result.
    attr_accessor :scenario

    def self.for(shape, server)
      new(shape: shape, server: server.name, version: server.version, note: server.note(shape), measurements: [], failures: [])
    end

    def self.from_json(hash)
      measurements = hash["measurements"].map { |measurement| Measurement.from_json(measurement) }
      new(**hash.transform_keys(&:to_sym), measurements: measurements, shape: Shape.new(**hash["shape"].transform_keys(&:to_sym)))
    end

    def self.median(values)
      values = values.compact.sort
      return if values.empty?

      (values[(values.size - 1) / 2] + values[values.size / 2]) / 2.0
    end

    def as_json
      to_h.merge(shape: shape.to_h.compact, measurements: measurements.map(&:as_json))
    end

    def measured?
      !measurements.empty?
    end

    # The median over the rounds of the block's value for a measurement.
    def median(&value)
      Cell.median(measurements.map(&value))
    end

    def rate
      median(&:rate)
    end

    def rates
      measurements.map(&:rate).minmax
    end

    def percentile(wanted)
      median { |measurement| measurement.percentile(wanted) }
    end

    # The ratio of rates to `other` (or of the values that `value` returns): the median over the rounds, each round
    # compared with the same round.
    def times(other, value = :rate)
      return unless measured? && other&.measured?

      value = value.to_proc
      theirs = other.measurements.to_h { |measurement| [measurement.round, value.call(measurement)] }
      Cell.median(measurements.filter_map { |mine| value.call(mine)&./(theirs[mine.round]) if theirs[mine.round] })
    end

    # The same for the other kind of clients, or nil.
    def beside
      dup.tap { |other| other.measurements = measurements.map(&:beside) } if measured? && measurements.all?(&:beside)
    end

    # The simulation's prediction for the measured clients (Simulation::Prediction), or nil.
    def prediction
      @prediction = scenario&.prediction(server, shape, median(&:seconds))&.values&.first unless defined?(@prediction)
      @prediction
    end

    # The percentile curve: percentile => median milliseconds over the rounds, up to the last percentile that has
    # requests beyond it. The block picks the latencies of a measurement; the default is the corrected ones, if there
    # are any.
    def curve(&latencies)
      curves = measurements.map(&(latencies || :curve))
      fewest = measurements.map(&:requests).min
      points = curves.map(&:keys).reduce(:&).select { |point| (100 - point) * fewest >= 100 }
      points.sort.to_h { |point| [point, Cell.median(curves.map { |curve| curve[point] })] }
    end

    # Requests of every connection of every round, divided by the mean of its round.
    def shares
      measurements.flat_map do |measurement|
        counts = measurement.per_connection or next []
        mean = counts.sum.fdiv(counts.size)
        mean.zero? ? [] : counts.map { |count| count / mean }
      end
    end
  end
end
