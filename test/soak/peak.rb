# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # Peak memory of the largest serving process during the load.
    class Peak
      # In MiB: no mixture of these clients needs more.
      MOST = 600
      PAUSE = 0.2

      attr_reader :memory

      def initialize(site)
        @site = site
        @memory = 0
      end

      def modest? = @memory <= MOST

      # Measures while the block runs; returns the block's result.
      def watch
        thread = Thread.new { loop { look && sleep(PAUSE) } }
        yield
      ensure
        thread&.kill&.join
      end

      private

      def look
        @site.serving.each { |pid| @memory = [@memory, Test::Processes.proportional_memory(pid) >> 20].max }
      rescue Errno::ENOENT, Errno::ESRCH
        true # it has just ended
      end
    end
  end
end
