# frozen_string_literal: true

require "json"

module Fairlead
  class EventLog
    # Writes messages as lines of JSON, for programs that collect logs: an object with time, level, pid, event and message.
    class Json < Text
      # In UTC, to the millisecond (RFC 3339).
      TIME = "%Y-%m-%dT%H:%M:%S.%LZ"

      def initialize(output, errors, **)
        super(output, errors)
      end

      def names_events? = true

      # The engine has no JSON for problems.
      def error_fd = nil

      private

      def line(level, event, text)
        JSON.generate(time: Time.now.utc.strftime(TIME), level: level, pid: Process.pid, event: event, message: utf8(text))
      end

      # A text may quote bytes of a request.
      def utf8(text) = text.dup.force_encoding(Encoding::UTF_8).scrub
    end
  end
end
