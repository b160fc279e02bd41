# frozen_string_literal: true

module Fairlead
  # The statistics of the server in this process and of its siblings, as Fairlead.stats returns them.
  module Stats
    @engines = {}.compare_by_identity
    @shared = nil

    class << self
      # Adds an engine, and the scoreboard it shares with other workers, if any.
      def add(engine, shared)
        @engines[engine] = true
        @shared = shared if shared
      end

      def remove(engine)
        @engines.delete(engine)
      end

      # +:engines+: an entry for each engine of this process (a worker has one). With workers also +:room+, the
      # requests in the waiting room: +waiting+ now, +moved+ there since the start, +refused+ by the kernel; and +:workers+, an
      # entry for each slot.
      def to_h
        stats = { engines: @engines.keys.map(&:stats) }
        return stats unless @shared

        board = @shared.stats
        stats.merge(room: board.slice(:waiting, :moved, :refused), workers: board[:workers])
      end
    end
  end
end
