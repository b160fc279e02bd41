# frozen_string_literal: true

module Fairlead
  # The streams of streaming bodies that are open after their call has returned. If the thread of a stream has died, no object
  # may be left that can write to it or close it. Only the garbage collector can tell, and in an idle process it may not run for
  # hours. So it is started when the last writer of a stream is dead, and when the server ends.
  module KeptStreams
    # Seconds between two looks at the writers.
    INTERVAL = 1

    # The pause between two collections: at least this many seconds, and this many times the duration of the last collection.
    LEAST_PAUSE = 10
    PAUSE = 100

    @look = @due = nil
    @collect_at = 0

    class << self
      # Called by the extension before a streaming body. The thread of the timers must not be younger than the writers: a new
      # thread gets the stack of a dead one with its old contents, and the collector treats them as used.
      def prepare
        Background.current.timers.prepare
      rescue ThreadError # no room for it
        nil
      end

      # Called by the extension when the call has returned, and the stream is open.
      def watch
        look_later
      rescue ThreadError # no room for the thread of the timers: the next collection finds the stream
        nil
      end

      def none? = !Native::Stream.kept?

      private

      # Timers end with the last server of a process, and with the process. A look that is late was lost on its way to a thread.
      def look_later
        return if @look&.active? && Clock.now < @due + (5 * INTERVAL)

        due = @due = Clock.now + INTERVAL
        @look = Background.current.timers.after(INTERVAL, -> { look(due) })
      end

      def look(due)
        return unless due == @due

        @look = nil
        collect if Clock.now >= @collect_at && Native::Stream.left?(Thread.list)
      ensure
        look_later unless none?
      end

      def collect
        before = Clock.now
        GC.start
        @collect_at = Clock.now + [LEAST_PAUSE, PAUSE * (Clock.now - before)].max
      end
    end

    # Looks for such streams while a server ends, since it would wait for each of them: at once, and after ever longer pauses.
    class Search
      def initialize
        @pause = 0
        @at = 0
      end

      def step
        return if Clock.now < @at || KeptStreams.none?

        GC.start
        @pause = [2 * @pause, INTERVAL].max
        @at = Clock.now + @pause
      end
    end
  end
end
