# frozen_string_literal: true

require_relative "gauges"

module Fairlead
  module Soak
    # Looks at the gauges of the server during the load. A value that no gauge may have ends the run: the cause is among the last
    # seconds of the log.
    class Watch
      PAUSE = 0.3

      # Number of times that it has read them.
      attr_reader :looks

      def initialize(site)
        @site = site
        @looks = 0
      end

      # Looks while the block runs; returns the block's result.
      def watch
        thread = Thread.new { loop { look && sleep(PAUSE) } }
        yield
      ensure
        thread&.kill&.join
      end

      private

      def look
        gauges = Gauges.of(@site) or return true
        @looks += 1
        @site.spoil("impossible gauges: #{gauges.impossible.join(", ")}") if gauges.impossible.any?
        true
      end
    end
  end
end
