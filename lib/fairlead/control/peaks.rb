# frozen_string_literal: true

module Fairlead
  module Control
    # The highest number of waiting requests and of connections without a thread since they were last read, for Puma's
    # `backlog_max` and `reactor_max`. The counters are looked at once a second, and when they are read.
    class Peaks
      # +counts+: returns what Fairlead.stats returns.
      def initialize(counts = Stats.method(:to_h))
        @counts = counts
        @highest = {}
        @lock = Mutex.new
      end

      # Looks at the counters now.
      def look
        counts = @counts.call
        rows = PumaStats.deal(counts).map { |worker| [worker[:slot], worker] }
        rows << [:engine, counts[:engines].first] if counts[:engines].any?
        @lock.synchronize { rows.each { |key, row| raise_to(key, row) } }
      end

      # { slot or :engine => { backlog_max:, reactor_max: } }; from now on they are counted anew.
      def take
        look
        @lock.synchronize { @highest.tap { @highest = {} } }
      end

      private

      def raise_to(key, row)
        highest = @highest[key] ||= { backlog_max: 0, reactor_max: 0 }
        found = { backlog_max: row[:queued], reactor_max: row[:connections] - row[:busy_threads] }
        highest.merge!(found) { |_, old, new| [old, new].max }
      end
    end
  end
end
