# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # The bytes of the history that sessions may take, so that neither one client nor all of them together empty it: in each
      # +history_time+ all sessions of a process take at most half of its share, and each owner at most a sixteenth.
      class Allowance
        # Bytes of a message besides its text.
        OVERHEAD = 100

        # +bytes+: of the history, for this process; +time+: in seconds. The block is the clock.
        def initialize(bytes, time, &clock)
          @all = bytes / 2
          @each = bytes / 16
          @time = time
          @clock = clock || -> { ::Process.clock_gettime(::Process::CLOCK_MONOTONIC) }
          @lock = Mutex.new
          renew(@clock.call)
        end

        # Returns false if an owner has no room for that many bytes.
        def take(owner, bytes)
          @lock.synchronize do
            now = @clock.call
            renew(now) if now - @begun >= @time
            bytes += OVERHEAD
            next false if @taken[owner] + bytes > @each || @sum + bytes > @all

            @taken[owner] += bytes
            @sum += bytes
            true
          end
        end

        private

        def renew(now)
          @begun = now
          @taken = Hash.new(0) # owner => bytes
          @sum = 0
        end
      end
    end
  end
end
