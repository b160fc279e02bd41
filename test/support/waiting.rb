# frozen_string_literal: true

module Fairlead
  module Test
    # Waiting for a condition with a deadline: the only way a test of Fairlead waits.
    module Waiting
      class Expired < StandardError; end

      PAUSE = 0.01

      module_function

      # Returns the block's first truthy value; raises Expired, naming +what+, when there is none within +seconds+.
      def wait_until(what = "the condition", seconds: 10)
        deadline = monotonic + seconds
        loop do
          value = yield
          return value if value
          raise Expired, "waited #{seconds} s in vain for #{what}" if monotonic > deadline

          sleep PAUSE
        end
      end

      # How long the block took, in seconds.
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
