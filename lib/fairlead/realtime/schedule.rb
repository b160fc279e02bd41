# frozen_string_literal: true

module Fairlead
  # The waiting timers, the next one first; timers for the same moment in the order in which they were added. It is a heap, so
  # adding and taking a timer costs the logarithm of their number. A cancelled timer stays until its turn, or until half of all
  # timers are cancelled. So the cost of cancelling does not depend on their number.
  class Schedule
    # Fewer cancelled timers are not worth cleaning up.
    LEAST_CANCELLED = 64

    def initialize
      clear
    end

    def empty? = @heap.empty?

    # Adds a timer; returns true if it is the next one.
    def add(time, timer)
      entry = [time, @number += 1, timer]
      @heap << entry
      rise(@heap.size - 1)
      @heap.first.equal?(entry)
    end

    # The time of the next timer, or nil.
    def next_time
      take_first while @heap.any? && !@heap.first.last.active?
      @heap.first&.first
    end

    # Takes out the next timer; returns its time and the timer.
    def take
      time, _, timer = take_first
      [time, timer]
    end

    # One of the timers has been cancelled.
    def cancelled
      @cancelled += 1
      return unless @cancelled > LEAST_CANCELLED && @cancelled * 2 > @heap.size

      @heap = @heap.select { |_, _, timer| timer.active? }.sort_by { |time, number,| [time, number] }
      @cancelled = 0
    end

    # Takes out the timers for which the block returns a false value. It gets the time and the timer.
    def retain
      @heap = @heap.select { |time, _, timer| yield time, timer }.sort_by { |time, number,| [time, number] }
    end

    def each_timer = @heap.each { |_, _, timer| yield timer }

    def clear
      @heap = []
      @number = @cancelled = 0
    end

    private

    def take_first
      first = @heap.first
      last = @heap.pop
      return first if @heap.empty?

      @heap[0] = last
      sink(0)
      first
    end

    def rise(place)
      while place.positive?
        above = (place - 1) / 2
        break unless before?(place, above)

        swap(place, above)
        place = above
      end
    end

    def sink(place)
      loop do
        below = (2 * place) + 1
        break if below >= @heap.size

        below += 1 if below + 1 < @heap.size && before?(below + 1, below)
        break unless before?(below, place)

        swap(place, below)
        place = below
      end
    end

    def before?(one, other)
      one = @heap[one]
      other = @heap[other]
      one[0] == other[0] ? one[1] < other[1] : one[0] < other[0]
    end

    def swap(one, other)
      @heap[one], @heap[other] = @heap[other], @heap[one]
    end
  end
end
