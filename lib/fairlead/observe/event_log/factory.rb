# frozen_string_literal: true

module Fairlead
  class EventLog
    # Makes the log of a configuration or a program.
    module Factory
      # The configured log of a command.
      def of(configuration, output: $stdout, errors: $stderr)
        new(quiet: configuration.quiet?, debug: configuration.debug?, prefix: configuration.supervised?, output: output, errors: errors,
            **form(configuration))
      end

      # The log of a server in a program. +object+: an EventLog, a Logger or an object with its methods, any object with #write
      # or #<<; nil for none, which prints only warnings and errors. Raises ConfigurationError.
      def for(object, configuration)
        object = configuration.custom_logger if object.nil?
        return object if object.respond_to?(:listening) && object.respond_to?(:app_failed)

        object = Options.fetch(:custom_logger).type.parse(object) unless object.nil?
        quiet = configuration.given?(:quiet) ? configuration.quiet? : object.nil?
        new(quiet: quiet, debug: configuration.debug?, **form(configuration), logger: object)
      rescue Options::Types::Invalid => e
        raise ConfigurationError, [ConfigurationError::Problem.new(:log, "Fairlead::Server", e.message)]
      end

      private

      def form(configuration)
        { format: configuration.log_format, formatter: configuration.log_formatter, logger: configuration.custom_logger }
      end
    end
  end
end
