# frozen_string_literal: true

module Fairlead
  class Configuration
    # The options of a server inside another program. Options that only the command has (workers, a pid file) are refused,
    # unless they have their default values.
    class EmbeddedLayer < Layer
      # Values that other defaults depend on.
      WITHOUT_WORKERS = { workers: 0, directory: "/" }.freeze
      private_constant :WITHOUT_WORKERS

      private

      def store(option, value, origin)
        super
        return if option.embedded? || value == option.default(WITHOUT_WORKERS)

        problem(option.name, origin, "has no meaning for a server inside another program")
      end
    end
  end
end
