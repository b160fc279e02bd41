# frozen_string_literal: true

module Fairlead
  module Soak
    # Looks at something again and again while a block runs. A class with this module has #look.
    module Watching
      # Seconds between two looks.
      PAUSE = 0.25

      # Looks until the block returns; returns its result.
      def watch
        thread = Thread.new { look_repeatedly }
        yield
      ensure
        thread&.kill&.join
      end

      private

      def look_repeatedly
        loop do
          look
          sleep(PAUSE)
        end
      end
    end
  end
end
