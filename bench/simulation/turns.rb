# frozen_string_literal: true

module Bench
  module Simulation
    # When a thread that computes loses the lock. `left` is asked when somebody begins to wait for it, and when it changes hands
    # while others wait: how many seconds remain at `now` to a thread that has `held` it so long already.
    module Turns
      # Ruby's own: whoever waits first starts a timer, and the lock is taken away when it ends.
      Ruby = Struct.new(:quantum) do
        def left(_held, _now, _random)
          quantum
        end
      end

      # Time slices: the lock changes hands every `period`, whoever has it then.
      Clock = Struct.new(:period) do
        # A rest of the period that is only rounding is none.
        def left(_held, now, _random)
          left = period - now % period
          left < 1e-9 ? left + period : left
        end
      end
    end
  end
end
