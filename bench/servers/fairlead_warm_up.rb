# frozen_string_literal: true

require_relative "fairlead_refork"

module Bench
  module Servers
    # Fairlead with warm_up. The scenario has the paths (Scenario#arguments).
    class FairleadWarmUp < FairleadRefork
      def name
        "fairlead-warm-up"
      end

      def missing
        super || ("this checkout has no option warm_up" unless File.read(File.join(ROOT, "lib/fairlead/options.rb")).include?("option :warm_up"))
      end

      def note(_shape)
        "`--warm-up` with pages of the application"
      end

      private

      def options(_site) = []
    end
  end
end
