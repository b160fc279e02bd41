# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # How much memory a process has had at most while the load lasted, of all the processes that serve.
    class Peak
      # In MiB: no mixture of these clients needs more, however they come together.
      MOST = 600
      PAUSE = 0.2

      attr_reader :memory

      def initialize(site)
        @site = site
        @memory = 0
      end

      def modest? = @memory <= MOST

      # Watches while the block runs; returns what it returns.
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
