# frozen_string_literal: true

module Fairlead
  module Test
    # Waits for a condition with a deadline: the only way a test of Fairlead waits.
    module Waiting
      class Expired < StandardError; end

      PAUSE = 0.01

      module_function

      # Returns the block's first truthy value; raises Expired, naming +what+, if there is none within +seconds+. +what+: a String, or a
      # callable that returns one at the deadline.
      def wait_until(what = "the condition", seconds: 10)
        deadline = monotonic + seconds
        loop do
          value = yield
          return value if value
          raise Expired, "timed out after #{seconds} s: waited for #{what.respond_to?(:call) ? what.call : what}" if monotonic > deadline

          sleep PAUSE
        end
      end

      # Returns the duration of the block, in seconds.
      def seconds_of
        start = monotonic
        yield
        monotonic - start
      end

      def monotonic
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
