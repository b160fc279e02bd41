# frozen_string_literal: true

module Bench
  module Growth
    # The CPU time of all processes of a server for an operation.
    class Cost
      BATCHES = 3

      # A server is quiet after so many looks, one each PAUSE seconds, at which no thread runs and at most TRIFLE of the time was CPU time.
      # PATIENCE: seconds after which it counts as quiet, because it works by itself.
      LOOKS = 2
      PAUSE = 0.015
      TRIFLE = 0.1
      PATIENCE = 3

      # Counts the processes that the server has now.
      def initialize(group)
        @group = group
        @pids = group.pids
        wait_until_quiet
      end

      # Microseconds for each of the +number+ operations in the block: the least of several batches, because other programs on the machine
      # only add to it.
      def each(number, batches: BATCHES, &block)
        Array.new(batches) { once(number, &block) }.min
      end

      # The same for one batch. The server is quiet before and after it.
      def once(number)
        before = cpu_seconds
        yield
        wait_until_quiet
        (cpu_seconds - before) * 1e6 / number
      end

      # The same for one batch, without the +background+ microseconds that the server uses in each second anyway.
      def beyond(background, number, &block)
        started = now
        found = once(number, &block)
        found - background * (now - started) / number
      end

      # Microseconds in a second in which nothing happens, and wake-ups of its threads.
      def of_a_second
        before = [cpu_seconds * 1e6, @group.wake_ups(of: @pids)]
        sleep 1
        [cpu_seconds * 1e6, @group.wake_ups(of: @pids)].zip(before).map { |after, earlier| after - earlier }
      end

      # Waits until the server has done everything that it has to do.
      def wait_until_quiet
        deadline = now + PATIENCE
        quiet = 0
        last = [now, cpu_seconds]
        while quiet < LOOKS && last.first < deadline
          sleep PAUSE
          this = [now, cpu_seconds]
          elapsed, used = this.zip(last).map { |later, earlier| later - earlier }
          quiet = used <= elapsed * TRIFLE && !@group.running?(of: @pids) ? quiet + 1 : 0
          last = this
        end
      end

      private

      def cpu_seconds = @group.cpu_seconds(of: @pids)

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
