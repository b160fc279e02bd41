# frozen_string_literal: true

module Fairlead
  class EventLog
    # Writes messages as lines of text: debug and info to one stream, warnings and errors to the other. Each line is one write,
    # so that the lines of several processes do not mix.
    class Text
      def self.suits?(object) = object.respond_to?(:write) || object.respond_to?(:<<)

      # +output+, +errors+: have #write or #<<. +formatter+: makes a line of a text, instead of the process id before it.
      def initialize(output, errors, prefix: false, formatter: nil)
        @output = output
        @errors = errors
        @prefix = prefix
        @formatter = formatter
      end

      # True if #write needs the name of the event.
      def names_events? = false

      # The engine writes its own lines if there is a descriptor, without a formatter.
      def request_fd = descriptor(@output)
      def error_fd = (descriptor(@errors) unless @formatter)

      # True if the lines have no format of the program's own.
      def plain? = @formatter.nil? && [descriptor(@output), descriptor(@errors)] == [1, 2]

      # Writes a message. If the terminal is closed or the disk is full, it is lost and the server goes on.
      def write(level, event, text)
        stream = %i[debug info].include?(level) ? @output : @errors
        line = "#{line(level, event, text)}\n"
        stream.respond_to?(:write) ? stream.write(line) : stream << line
        stream.flush if stream.respond_to?(:flush)
      rescue SystemCallError, IOError
        nil
      end

      private

      # A formatter that raises does not cost the message.
      def line(_level, _event, text)
        return @formatter.call(text).to_s.chomp if @formatter

        @prefix ? "[#{Process.pid}] #{text}" : text
      rescue StandardError
        text
      end

      def descriptor(stream)
        stream.fileno if stream.respond_to?(:fileno)
      rescue IOError
        nil
      end
    end
  end
end
