# frozen_string_literal: true

module Fairlead
  class EventLog
    # From a message to the writer: the level decides if it is written, and the calling method of EventLog names its event.
    module Levels
      private

      # Makes the text only if it is wanted.
      def debug
        write(:debug, yield) if @debug
      end

      def info(text)
        write(:info, text) unless @quiet
      end

      def warn(text) = write(:warn, text)

      def problem(text) = write(:error, text)

      def write(level, text)
        event = caller_locations(1, 2).map(&:base_label).find { |name| !NAMES.include?(name) } if @writer.names_events?
        @writer.write(level, event, SystemText.shown(text))
      end

      # The methods above.
      NAMES = %w[debug info warn problem].freeze
      private_constant :NAMES
    end
  end
end
