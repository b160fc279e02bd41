# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead with a refork after 1,000 requests.
    class FairleadRefork < Fairlead
      def name
        "fairlead-refork"
      end

      # It is about memory.
      def dialect
        nil
      end

      def runs?(shape, scenario)
        scenario.memory? && !shape.single?
      end

      def note(_shape)
        "`--refork-after=1000`"
      end

      private

      def options(_site)
        ["--refork-after=1000"]
      end
    end
  end
end
