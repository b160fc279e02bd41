# frozen_string_literal: true

module Bench
  module Servers
    # The ceiling: Fairlead's engine with a constant response and no Ruby at all. The difference to Fairlead is Ruby.
    class Native < Server
      def rank
        2
      end

      def missing
        "the example `ceiling` of crates/engine cannot be built" unless Binaries.ceiling
      end

      def version
        "this checkout"
      end

      def runs?(_shape, scenario)
        scenario.fixed_answer?
      end

      def note(shape)
        "no Ruby: the engine with a constant response, #{shape.concurrency} native #{shape.concurrency == 1 ? "thread" : "threads"}"
      end

      def processes(_shape)
        1
      end

      def command(_site, port, shape)
        [Binaries.ceiling, port.to_s, shape.concurrency.to_s]
      end
    end
  end
end
