# frozen_string_literal: true

module Fairlead
  class EventLog
    # Hands messages over to the Logger of a program: one of Ruby's, or what has its methods. It decides which levels it wants,
    # and how a line looks.
    class Logger
      # What it calls. A logger without #debug gets no such messages.
      METHODS = %i[info warn error].freeze

      def self.suits?(object) = METHODS.all? { |name| object.respond_to?(name) }

      # +formatter+: is applied to the text before.
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

      # Whatever goes wrong in the logger of the program, the server goes on.
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
