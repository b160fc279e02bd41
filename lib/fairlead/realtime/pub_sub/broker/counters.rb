# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # Counts of one process; threads may add at the same time.
      class Counters
        NAMES = %i[published lost refused waits received missed reconnects].freeze

        def initialize
          @lock = Mutex.new
          @counts = NAMES.to_h { |name| [name, 0] }
        end

        def add(name, number = 1)
          @lock.synchronize { @counts[name] += number }
        end

        def [](name) = @counts.fetch(name)

        def to_h = @lock.synchronize { @counts.dup }
      end
    end
  end
end
