# frozen_string_literal: true

module Fairlead
  # Figures of the server that runs in this process, and of its siblings: what Fairlead.stats returns.
  module Stats
    @engines = {}.compare_by_identity
    @shared = nil

    class << self
      # Lets an engine's figures be read, and the board it shares with other workers, if any.
      def add(engine, shared)
        @engines[engine] = true
        @shared = shared if shared
      end

      def remove(engine)
        @engines.delete(engine)
      end

      # +:engines+: an entry for each engine of this process (a worker has one). With workers also +:room+, who waits for
      # the next free worker: +waiting+ now, +moved+ there since the start, +refused+ by the kernel; and +:workers+, an
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
