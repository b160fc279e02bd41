# frozen_string_literal: true

module Puma
  # The log of plugins. The lines go to the log of Fairlead.
  class LogWriter
    # +log+: an EventLog.
    def initialize(log)
      @log = log
    end

    def log(text) = @log.plugin(text)
    alias write log
    alias info log

    def warn(text) = @log.warning(text)

    # Fairlead has no debugging log.
    def debug(_text = nil) = nil
    def debug? = false

    # Puma ends the process; here an exception ends the plugin's work, and the server goes on.
    def error(text) = raise(Fairlead::Error, text)

    def unknown_error(error, *) = @log.plugin_failed("a plugin", error)

    def stdout = @log.output
    def stderr = @log.errors
  end
end
