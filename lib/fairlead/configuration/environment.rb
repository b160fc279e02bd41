# frozen_string_literal: true

module Fairlead
  class Configuration
    # The options that environment variables set. If an option has several variables, the first one that is not blank wins.
    module Environment
      module_function

      # Returns a Layer.
      def read(environment)
        Layer.new.tap do |layer|
          Options.each do |entry|
            name = entry.variables.find { |variable| !text(environment[variable]).empty? }
            layer.set(entry.name, text(environment[name]), origin: name) if name
          end
        end
      end

      def text(value) = SystemText.decode(value.to_s).strip
    end
  end
end
