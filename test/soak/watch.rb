# frozen_string_literal: true

require_relative "gauges"
require_relative "watching"

module Fairlead
  module Soak
    # Looks at the gauges of the server during the load. A value that no gauge may have ends the run: the cause is among the last
    # seconds of the log.
    class Watch
      include Watching

      # Number of times that it has read them.
      attr_reader :looks

      def initialize(site)
        @site = site
        @looks = 0
      end

      private

      def look
        gauges = Gauges.of(@site) or return
        @looks += 1
        @site.spoil("impossible gauges: #{gauges.impossible.join(", ")}") if gauges.impossible.any?
      end
    end
  end
end
