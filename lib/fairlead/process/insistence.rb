# frozen_string_literal: true

module Fairlead
  # Decides whether a signal to a server that is about to end means that it is to end at once. GNU `timeout`, `tini -g`, foreman, npm and
  # shells send TERM or HUP twice, or after an INT, because they signal both the process and its group: such a signal only repeats the
  # first one. A second INT comes from a person.
  class Insistence
    # How long after the first signal others repeat it, in seconds.
    SECONDS = 1

    REPEATED = %i[TERM HUP].freeze

    # Somebody asks for the end.
    def begin
      @began = now if @began.nil?
    end

    # Whether +event+ asks to hurry. Only signals do, not the commands of the control server, and not the first one: a server may end by
    # itself before.
    def hurries?(event)
      return false unless Signals::REQUESTS.key?(event)
      return false.tap { self.begin } if @began.nil?

      !REPEATED.include?(event) || now - @began > SECONDS
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
