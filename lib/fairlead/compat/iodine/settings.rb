# frozen_string_literal: true

require "etc"

# Settings for programs that start the server with Iodine.start. While a server runs, they return its options, and setting them
# only prints a warning.
module Iodine
  # The defaults of Iodine.listen.
  DEFAULT_SETTINGS = { port: ENV["PORT"] || "3000", address: nil } # rubocop:disable Style/MutableConstant -- applications set it

  @threads = @workers = 0
  @verbosity = 4

  class << self
    # Below 4: only warnings and errors are printed; from 4 on: all messages.
    attr_reader :verbosity

    def verbosity=(level)
      @verbosity = integer(:verbosity, level, 0..5)
    end

    # The maximum number of threads of a process. 0: Fairlead's default; -n: the number of processors divided by n.
    def threads = launcher&.configuration&.max_threads || @threads

    def threads=(count)
      @threads = settable(:threads, count, 4095)
    end

    # The number of processes; 1 means only this one. 0: Fairlead's default; -n: the number of processors divided by n.
    def workers
      count = launcher&.configuration&.workers or return @workers
      [count, 1].max
    end

    def workers=(count)
      @workers = settable(:workers, count, 511)
    end

    private

    # These settings as options of Fairlead.
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
