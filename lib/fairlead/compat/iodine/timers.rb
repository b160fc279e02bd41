# frozen_string_literal: true

# Blocks that run later. Times are in milliseconds here, but in seconds in Fairlead. The methods return the block instead of a
# timer; to cancel one, use Fairlead.run_after or Fairlead.run_every.
module Iodine
  class << self
    # Runs the block on a thread of the server, soon.
    def run(&block)
      Fairlead.defer(&needed(block))
      block
    end
    alias defer run

    # Runs the block once, after a time that begins now or when the server begins to serve.
    def run_after(milliseconds, &block)
      Fairlead.run_after(seconds(milliseconds), &needed(block))
      block
    end

    # Runs the block at an interval. +repetitions+: the number of runs; 0 or nil for no end.
    def run_every(milliseconds, repetitions = 0, &block)
      raise TypeError, "repetitions must be an Integer or nil" unless repetitions.nil? || repetitions.is_a?(Integer)

      Fairlead.run_every(seconds(milliseconds), repetitions.to_i.positive? ? repetitions : nil, &needed(block))
      block
    end

    # Runs the block once, after everything that waits to be run now.
    def on_idle(&block) = run(&block)

    private

    def needed(block)
      block or raise ArgumentError, "a block is needed"
    end

    def seconds(milliseconds)
      raise TypeError, "milliseconds must be an Integer" unless milliseconds.is_a?(Integer)
      raise ArgumentError, "milliseconds must not be negative" if milliseconds.negative?

      milliseconds / 1000.0
    end
  end
end
