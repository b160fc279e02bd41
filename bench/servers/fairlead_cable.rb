# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead from this checkout with Action Cable.
    class FairleadCable < Fairlead
      ADAPTER = File.join(ROOT, "lib/action_cable/subscription_adapter/fairlead.rb")

      def name
        "fairlead-cable"
      end

      def missing
        super || ("gem actioncable is not installed" if Gem::Specification.find_all_by_name("actioncable").empty?)
      end

      def version
        "#{super} + Action Cable #{Gem::Specification.find_by_name("actioncable").version}"
      end

      def note(_shape)
        "the adapter `#{adapter}`, and the messages of the browser's client"
      end

      def dialect
        CableDialect.new("adapter" => adapter)
      end

      def takes_requests?
        false
      end

      private

      def adapter
        File.exist?(ADAPTER) ? "fairlead" : "async"
      end
    end
  end
end
