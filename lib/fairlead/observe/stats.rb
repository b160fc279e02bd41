# frozen_string_literal: true

module Fairlead
  # The statistics of this process and of all workers, as Fairlead.stats returns them.
  module Stats
    @engines = {}.compare_by_identity
    @shared = nil

    class << self
      # The scoreboard of all workers, in a process without an engine: the supervisor.
      attr_writer :shared

      # Adds an engine, and the scoreboard it shares with other workers, if any.
      def add(engine, shared)
        @engines[engine] = true
        @shared = shared if shared
      end

      def remove(engine)
        @engines.delete(engine)
      end

      # @return [Hash] +:engines+ has an entry for each engine of this process (a worker has one), +:waits+ the histograms of all
      #   workers together; without workers, of all engines. With workers also +:room+, the waiting room, and +:workers+, an entry
      #   for each slot. Native.statistics describes each statistic.
      def to_h
        engines = @engines.keys.map(&:stats)
        { engines: engines, waits: waits(engines) }.merge(@shared ? @shared.stats : {})
      end

      private

      def waits(engines)
        engines.map { |stats| stats.select { |_, value| value.is_a?(Hash) } }.inject { |one, other| sum(one, other) } || {}
      end

      def sum(one, other)
        one.merge(other) { |_, left, right| left.is_a?(Hash) ? sum(left, right) : left + right }
      end
    end
  end
end
