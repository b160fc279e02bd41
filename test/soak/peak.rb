# frozen_string_literal: true

require_relative "site"
require_relative "watching"

module Fairlead
  module Soak
    # Peak memory of the largest serving process during the load.
    class Peak
      include Watching

      # In MiB: no mixture of these clients needs more.
      MOST = 600

      attr_reader :memory

      def initialize(site)
        @site = site
        @memory = 0
      end

      def modest? = @memory <= MOST

      private

      def look
        @site.serving.each { |pid| @memory = [@memory, Test::Processes.proportional_memory(pid) >> 20].max }
      rescue Errno::ENOENT, Errno::ESRCH
        nil # it has just ended
      end
    end
  end
end
