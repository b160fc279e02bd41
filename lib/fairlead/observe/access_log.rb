# frozen_string_literal: true

module Fairlead
  # Where the engine logs requests: to a file, to where the event log goes, or nowhere.
  class AccessLog
    # The LogFile, or nil.
    attr_reader :file

    # +path+: "-" for where the event log goes, nil for no log. Raises ConfigurationError, with +origin+, if it cannot be
    # opened.
    def initialize(path, origin: nil)
      @path = path
      @file = LogFile.new(path) if path && !output?
    rescue SystemCallError => e
      raise ConfigurationError, [ConfigurationError::Problem.new(:access_log, origin, "#{Error.reason(e)} (#{path})")]
    end

    # The descriptor of the file, or nil.
    def fileno = file&.fileno

    # Whether requests are logged to where the event log goes.
    def output? = @path == "-"

    def close = file&.close
  end
end
