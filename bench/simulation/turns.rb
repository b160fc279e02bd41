# frozen_string_literal: true

module Bench
  module Simulation
    # Rules for the end of a computing thread's turn. `left` is called when a thread begins to wait for the lock, and
    # when the lock changes hands while others wait. It returns the seconds that remain at `now` for a thread that has
    # `held` it that long.
    module Turns
      # Ruby's own rule: the first waiting thread starts a timer, and the holder loses the lock when it ends.
      Ruby = Struct.new(:quantum) do
        def left(_held, _now, _random)
          quantum
        end
      end

      # Time slices: the lock changes hands every `period`, regardless of the holder's start.
      Clock = Struct.new(:period) do
        # A remainder of the period that is only rounding counts as zero.
        def left(_held, now, _random)
          left = period - now % period
          left < 1e-9 ? left + period : left
        end
      end
    end
  end
end
