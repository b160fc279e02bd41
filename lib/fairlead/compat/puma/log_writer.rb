# frozen_string_literal: true

module Puma
  # The log of plugins. The lines go to the log of Fairlead.
  class LogWriter
    # Puma's default form of a line.
    class DefaultFormatter
      def call(text) = text
    end

    # Makes a line of a text: has #call.
    attr_accessor :formatter

    # Gets the lines in place of Fairlead's log, if it has #write.
    attr_accessor :custom_logger

    # +log+: an EventLog.
    def initialize(log)
      @log = log
      @formatter = DefaultFormatter.new
    end

    def log(text)
      return @custom_logger.write(format(text)) if @custom_logger.respond_to?(:write)

      @log.plugin(format(text))
    end
    alias write log
    alias info log

    def format(text) = @formatter.call(text)

    def warn(text) = @log.warning(text)

    # Fairlead has no debugging log.
    def debug(_text = nil) = nil
    def debug? = false

    # Puma ends the process; here an exception ends the plugin's work, and the server goes on.
    def error(text) = raise(Fairlead::Error, text)

    # +request+: Puma's object for it, which Fairlead does not have.
    def unknown_error(error, _request = nil, text = "a plugin") = @log.plugin_failed(text, error)
    def connection_error(error, request = nil, text = "HTTP connection error") = unknown_error(error, request, text)
    def parse_error(error, request = nil) = unknown_error(error, request, "HTTP parse error, malformed request")
    def ssl_error(error, _socket = nil) = unknown_error(error, nil, "SSL error")

    def debug_error(_error, _request = nil, _text = "") = nil

    # The streams of the log; the standard streams, if it has none.
    def stdout = stream(:output, $stdout)
    def stderr = stream(:errors, $stderr)

    private

    def stream(name, standard) = (@log.public_send(name) if @log.respond_to?(name)) || standard
  end
end
