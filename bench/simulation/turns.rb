# frozen_string_literal: true

module Bench
  module Simulation
    # When a thread that computes loses the lock. `left` is asked when somebody begins to wait for it, and when it changes hands
    # while others wait: how many seconds remain to a thread that has `held` it so long already.
    module Turns
      # Ruby's own: whoever waits first starts a timer, and the lock is taken away when it ends.
      Ruby = Struct.new(:quantum) do
        def left(_held, _random)
          quantum
        end
      end

      # Time slices: a monitor looks every `tick` whether the turn has lasted for a slice and somebody waits.
      Slices = Struct.new(:slice, :tick) do
        def left(held, random)
          [slice - held, 0].max + random.rand * tick
        end
      end
    end
  end
end
