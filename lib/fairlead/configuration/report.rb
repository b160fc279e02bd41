# frozen_string_literal: true

module Fairlead
  class Configuration
    # The output of `fairlead --check`: each option, its value and the source of the value.
    class Report
      def initialize(configuration)
        @configuration = configuration
      end

      def to_s
        widths = rows.transpose.first(2).map { |column| column.map(&:length).max }
        rows.map { |name, value, origin| "#{name.ljust(widths[0])}  #{value.ljust(widths[1])}  #{origin}\n" }.join
      end

      private

      def rows
        @rows ||= Options.settings.map do |option|
          [option.name, option.format(@configuration[option.name]), @configuration.origin(option.name)].map { |text| SystemText.shown(text) }
        end
      end
    end
  end
end
