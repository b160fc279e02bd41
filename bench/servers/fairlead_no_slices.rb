# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead without time slices: shows their benefit and their cost.
    class FairleadNoSlices < Fairlead
      def name
        "fairlead-no-slices"
      end

      def missing
        super || ("this checkout has no option time_slice" unless slices?)
      end

      # Slices matter with CPU-bound requests, and must not matter without.
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
