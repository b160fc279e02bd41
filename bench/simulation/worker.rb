# frozen_string_literal: true

module Bench
  module Simulation
    # A process with a number of threads and one lock. It runs requests: their steps, one after the other. The server's
    # model decides which request comes next.
    class Worker
      # Additional sleep of a thread: the kernel's timer slack, and the wait for a processor.
      OVERSLEEPING = 0.000_08

      attr_reader :queue
      attr_accessor :free

      # overhead: seconds of computing that the server adds to each request.
      def initialize(calendar, threads, lock, overhead)
        @calendar = calendar
        @lock = lock
        @overhead = overhead
        @free = threads
        @queue = []
        @parts = {}
      end

      # Runs the request of a client on a thread that the caller has reserved, then calls the block.
      def run(client, &done)
        parts = @parts[client.kind] ||= Worker.parts([[:compute, @overhead], *client.kind.steps])
        run_from(parts, 0, done)
      end

      # Steps as [sleep, compute] pairs of seconds: a thread needs the lock once for everything that it computes between
      # two sleeps, and once after the last sleep to respond.
      def self.parts(steps)
        steps.each_with_object([[0.0, 0.0]]) do |(what, seconds), parts|
          what == :sleep ? parts << [seconds, 0.0] : parts.last[1] += seconds
        end
      end

      private

      def run_from(parts, index, done)
        sleeps, computes = parts[index]
        return done.call unless sleeps

        following = -> { run_from(parts, index + 1, done) }
        return @lock.compute(computes, &following) if sleeps.zero?

        @calendar.after(sleeps + OVERSLEEPING) { @lock.compute(computes, &following) }
      end
    end
  end
end
