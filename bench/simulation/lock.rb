# frozen_string_literal: true

module Bench
  module Simulation
    # The lock of one Ruby process: one thread computes at a time, the others wait in a queue. A thread keeps the lock
    # until it is done, or until its turn is over (Turns) and another thread waits; then it goes to the end of the
    # queue. So CPU-bound threads share the processor, a slice at a time.
    class Lock
      # Remaining computation of a thread, and its continuation.
      Work = Struct.new(:left, :done)

      def initialize(calendar, turns, random)
        @calendar = calendar
        @turns = turns
        @random = random
        @line = []
        @turn = 0 # number of the turn: events planned for an earlier turn are void
      end

      # Computes for `seconds`, in turns, then calls the block.
      def compute(seconds, &done)
        work = Work.new(seconds, done)
        return take(work) unless @holder

        @line << work
        first_in_line if @line.size == 1
      end

      private

      def take(work)
        @holder = work
        @since = @calendar.now
        turn = @turn += 1
        @calendar.after(work.left) { finish if turn == @turn }
        first_in_line unless @line.empty?
      end

      # A thread begins to wait, during this turn.
      def first_in_line
        turn = @turn
        @calendar.after(@turns.left(@calendar.now - @since, @calendar.now, @random)) { give_up if turn == @turn }
      end

      # The turn is over.
      def give_up
        work = @holder
        work.left -= @calendar.now - @since
        @line << work
        take(@line.shift)
      end

      def finish
        done = @holder.done
        @holder = nil
        @line.empty? ? @turn += 1 : take(@line.shift)
        done.call
      end
    end
  end
end
