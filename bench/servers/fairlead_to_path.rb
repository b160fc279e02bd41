# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead with an application that responds with a body that is not a File and has only a path.
    class FairleadToPath < Fairlead
      def name
        "fairlead-to-path"
      end

      def way
        :to_path
      end

      def note(_shape)
        "a body with `to_path` that opens nothing and yields nothing"
      end
    end
  end
end
