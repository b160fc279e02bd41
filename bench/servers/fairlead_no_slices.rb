# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead that leaves Ruby's lock to Ruby: what time slices give, and what they cost.
    class FairleadNoSlices < Fairlead
      def name
        "fairlead-no-slices"
      end

      def missing
        super || ("this checkout has no option time_slice" unless slices?)
      end

      # It matters where something computes, and must not matter where nothing does.
      def dialect
        nil
      end

      def runs?(_shape, scenario)
        scenario.slices?
      end

      def note(_shape)
        "`--time-slice 0`"
      end

      private

      def slices?
        File.read(File.join(ROOT, "lib/fairlead/options.rb")).match?(/\btime_slice\b/)
      end

      def options(_site)
        ["--time-slice", "0"]
      end
    end
  end
end
