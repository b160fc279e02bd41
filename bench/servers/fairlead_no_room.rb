# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead without the common queue of the workers: shows the benefit and the cost of the waiting room.
    class FairleadNoRoom < Fairlead
      def name
        "fairlead-no-room"
      end

      # The waiting room is for requests.
      def dialect
        nil
      end

      def runs?(shape, _scenario)
        !shape.single?
      end

      def note(_shape)
        "`--no-waiting-room`"
      end

      private

      def options(_site)
        ["--no-waiting-room"]
      end
    end
  end
end
