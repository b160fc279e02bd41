# frozen_string_literal: true

module Bench
  module Simulation
    # A process with a number of threads and one lock. It runs requests: their steps, one after the other. Which request comes
    # next is for the server to say.
    class Worker
      # How much longer than asked for a thread sleeps: the kernel's timer slack, and the way back onto a processor.
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

      # Runs the request of a client on a thread that the caller has taken, then calls the block.
      def run(client, &done)
        parts = @parts[client.kind] ||= Worker.parts([[:compute, @overhead], *client.kind.steps])
        run_from(parts, 0, done)
      end

      # Steps as [how long it sleeps, how long it then computes] in turn: a thread wants the lock once for all that it computes
      # between two sleeps, and after the last one to answer.
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
