# frozen_string_literal: true

module Fairlead
  # Whether a server has had nothing to do for as long as the option idle_timeout says. It looks at the statistics now and
  # then, so a request costs nothing. Time in which nobody could have reached the server does not count: see RunningTime.
  class Idleness
    # What grows with all that clients and the application want to have done.
    COUNTERS = %i[requests refused_requests events].freeze

    # What is above zero while something is to be done. An open WebSocket counts, a connection between two requests does not.
    GAUGES = %i[queued busy_threads clients].freeze

    # The longest time between two looks, in seconds.
    LONGEST_PAUSE = 1.0

    # +seconds+: the time. The block returns the statistics of each engine of the server.
    def initialize(seconds, &statistics)
      @seconds = seconds
      @statistics = statistics
      @count = nil
      @clock = RunningTime.new
      @since = now
    end

    # Seconds until the next look.
    def pause = [@seconds / 4.0, LONGEST_PAUSE].min

    # Looks, and returns whether the time is over.
    def over?
      @clock.look(pause)
      engines = @statistics.call
      count = sum(engines, COUNTERS)
      @since = now if count != @count || sum(engines, GAUGES).positive?
      @count = count
      now - @since >= @seconds
    end

    private

    def sum(engines, names) = engines.sum { |engine| names.sum { |name| engine.fetch(name) } }

    def now = @clock.now
  end
end
