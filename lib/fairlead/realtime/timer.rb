# frozen_string_literal: true

module Fairlead
  # A block that runs later, once or again and again: what Fairlead.run_after and Fairlead.run_every return.
  class Timer
    # Until the first run, and between runs.
    attr_reader :seconds

    # +repetitions+: how many runs there are to be; nil for no end.
    def initialize(timers, seconds, repetitions, block)
      @timers = timers
      @seconds = seconds
      @left = repetitions
      @block = block
      @running = false
    end

    # Lets it run no more. A run that has begun goes on. True when there was something to cancel.
    def cancel
      was_active = active?
      finish
      @timers.remove(self)
      was_active
    end

    # Whether it runs now or will run.
    def active? = !@block.nil?

    # --- for Timers

    # Counts a run; false when the last one has not been run yet, so that this one is to be skipped.
    def count_run
      return false if @running

      @left -= 1 if @left
      @running = true
    end

    # Whether there is another run after this one.
    def again? = active? && @left != 0

    def finish
      @block = nil
    end

    # The run itself.
    def call
      @block.call if @block && @timers.running?
    rescue StandardError, ScriptError => e
      @timers.failed(e)
    ensure
      finish if @left&.zero?
      @running = false
    end
  end
end
