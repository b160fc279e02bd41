# frozen_string_literal: true

module Fairlead
  class EventLog
    # Hands messages over to the Logger of a program: one of Ruby's, or an object with its methods. The Logger decides about
    # levels and the form of a line.
    class Logger
      # The methods that it calls. A logger without #debug gets no such messages.
      METHODS = %i[info warn error].freeze

      def self.suits?(object) = METHODS.all? { |name| object.respond_to?(name) }

      # +formatter+: is applied to the text first.
      def initialize(logger, formatter: nil)
        @logger = logger
        @formatter = formatter
      end

      def names_events? = false

      # The engine cannot call a Logger.
      def request_fd = nil
      def error_fd = nil

      # Only this process has it.
      def plain? = false

      # The server goes on after any error in the logger of the program.
      def write(level, _event, text)
        @logger.public_send(level, formatted(text)) if level != :debug || @logger.respond_to?(:debug)
      rescue StandardError
        nil
      end

      private

      def formatted(text) = @formatter ? @formatter.call(text).to_s.chomp : text
    end
  end
end
