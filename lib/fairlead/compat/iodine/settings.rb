# frozen_string_literal: true

require "etc"

# What the server is to be like, for programs that start it with Iodine.start. Once a server runs, these tell its own
# options, and setting them only causes a warning.
module Iodine
  # What Iodine.listen takes where it is told nothing.
  DEFAULT_SETTINGS = { port: ENV["PORT"] || "3000", address: nil } # rubocop:disable Style/MutableConstant -- applications set it

  @threads = @workers = 0
  @verbosity = 4

  class << self
    # 0: nothing is printed, 1 to 3: warnings and errors, 4: also what is in order.
    attr_reader :verbosity

    def verbosity=(level)
      @verbosity = integer(:verbosity, level, 0..5)
    end

    # How many threads a process has at most. 0: as many as Fairlead has by itself; -n: a n-th of the processors.
    def threads = launcher&.configuration&.max_threads || @threads

    def threads=(count)
      @threads = settable(:threads, count, 4095)
    end

    # How many processes there are, 1 meaning this one. 0: as many as Fairlead has by itself; -n: a n-th of the processors.
    def workers
      count = launcher&.configuration&.workers or return @workers
      [count, 1].max
    end

    def workers=(count)
      @workers = settable(:workers, count, 511)
    end

    private

    # The options of Fairlead that follow.
    def process_options
      options = { quiet: verbosity < 4 }
      options[:workers] = fraction(@workers) unless @workers.zero?
      options[:workers] = 0 if options[:workers] == 1
      options[:max_threads] = fraction(@threads) unless @threads.zero?
      options
    end

    # -n is the number of processors divided by n.
    def fraction(count)
      count.positive? ? count : [Etc.nprocessors / -count, 1].max
    end

    def launcher = Fairlead::Launcher.current

    def settable(name, count, most)
      integer(name, count, -most..most)
      warn("Iodine.#{name}= has no effect: the server is already running; use its option --#{name}", uplevel: 2) if launcher
      count
    end

    def integer(name, value, range)
      raise TypeError, "#{name} must be an Integer" unless value.is_a?(Integer)
      raise RangeError, "#{name} must be in #{range}, not #{value}" unless range.cover?(value)

      value
    end
  end
end
