# frozen_string_literal: true

module Fairlead
  class Configuration
    # The options that environment variables set. If an option has several variables, the first that is not blank counts.
    module Environment
      module_function

      # Returns a Layer.
      def read(environment)
        Layer.new.tap do |layer|
          Options.each do |entry|
            name = entry.variables.find { |variable| !environment[variable].to_s.strip.empty? }
            layer.set(entry.name, environment[name].strip, origin: name) if name
          end
        end
      end
    end
  end
end
