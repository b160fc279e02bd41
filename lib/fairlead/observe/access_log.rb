# frozen_string_literal: true

module Fairlead
  # The destination of request lines: a file, the output of the event log, or none.
  class AccessLog
    # The LogFile, or nil.
    attr_reader :file

    # +path+: "-" for the output of the event log, nil for no log. Raises ConfigurationError, with +origin+, if the file cannot
    # be opened.
    def initialize(path, origin: nil)
      @path = path
      @file = LogFile.new(path) if path && !output?
    rescue SystemCallError => e
      raise ConfigurationError, [ConfigurationError::Problem.new(:access_log, origin, Error.reason(e))]
    end

    # The descriptor of the file, or nil.
    def fileno = file&.fileno

    # True if requests are logged to the output of the event log.
    def output? = @path == "-"

    def close = file&.close
  end
end
