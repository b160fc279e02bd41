# frozen_string_literal: true

module Bench
  module Simulation
    # Simulated time, in seconds, and the planned events: a binary heap. Events at the same moment happen in the order
    # in which they were planned.
    class Calendar
      attr_reader :now

      def initialize
        @now = 0.0
        @planned = 0
        @heap = []
      end

      # Calls the block `seconds` from now.
      def after(seconds, &action)
        @heap << [@now + seconds, @planned += 1, action]
        rise(@heap.size - 1)
      end

      # Runs all events that are due before `time`.
      def run_until(time)
        while (first = @heap.first) && first[0] < time
          remove_first
          @now = first[0]
          first[2].call
        end
        @now = time
      end

      private

      def remove_first
        last = @heap.pop
        return if @heap.empty?

        @heap[0] = last
        sink(0)
      end

      def rise(index)
        entry = @heap[index]
        while index.positive?
          parent = (index - 1) / 2
          break unless before?(entry, @heap[parent])

          @heap[index] = @heap[parent]
          index = parent
        end
        @heap[index] = entry
      end

      def sink(index)
        entry = @heap[index]
        while (child = first_child(index)) && before?(@heap[child], entry)
          @heap[index] = @heap[child]
          index = child
        end
        @heap[index] = entry
      end

      def first_child(index)
        left = 2 * index + 1
        return if left >= @heap.size

        left + 1 < @heap.size && before?(@heap[left + 1], @heap[left]) ? left + 1 : left
      end

      def before?(one, other)
        one[0] < other[0] || (one[0] == other[0] && one[1] < other[1])
      end
    end
  end
end
