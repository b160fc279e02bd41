# frozen_string_literal: true

module Fairlead
  # A block that runs later, once or repeatedly. {Fairlead.run_after} and {Fairlead.run_every} return one.
  class Timer
    # @return [Float] seconds before the first run, and between runs
    attr_reader :seconds

    # +repetitions+: the number of runs; nil for no end.
    #
    # @api private
    def initialize(timers, seconds, repetitions, block)
      @timers = timers
      @seconds = seconds
      @left = @repetitions = repetitions
      @block = @given = block
      @running = false
    end

    # Prevents further runs. A run that has begun is finished.
    #
    # @return [Boolean] whether there was something to cancel
    def cancel
      was_active = active?
      @given = nil
      finish
      @timers.remove(self) if was_active
      was_active
    end

    # @return [Boolean] whether it is running or will run
    def active? = !@block.nil?

    # --- for Timers

    # Counts a run. Returns false if the last one has not ended, so that this one is skipped.
    #
    # @api private
    def count_run
      return false if @running

      @left -= 1 if @left
      @running = true
    end

    # Reverts #count_run: the block has not run.
    #
    # @api private
    def postpone
      @left += 1 if @left
      @running = false
    end

    # True if it runs only once.
    #
    # @api private
    def once? = @repetitions == 1

    # True if there is another run after this one.
    #
    # @api private
    def again? = active? && @left != 0

    # @api private
    def finish
      @block = nil
    end

    # Resets it to its first state. Returns false if it was cancelled.
    #
    # @api private
    def renew
      @left = @repetitions
      @block = @given
      @running = false # the last run may never have begun
      active?
    end

    # Runs the block, if it is due.
    #
    # @api private
    def call = @timers.begin?(self) ? run : nil

    private

    def run
      @block&.call
    rescue StandardError, ScriptError => e
      @timers.failed(e)
    ensure
      finish if @left&.zero?
      @running = false
    end
  end
end
