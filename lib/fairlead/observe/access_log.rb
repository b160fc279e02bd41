# frozen_string_literal: true

module Fairlead
  # The open file to which the engine logs requests. HUP reopens it under the same descriptor after log rotation has moved
  # it.
  class AccessLog
    # +path+: "-" for standard output, nil for no log. Raises ConfigurationError, with +origin+, if it cannot be opened.
    def initialize(path, origin: nil)
      @path = path
      @file = open_file if file?
    rescue SystemCallError => e
      raise ConfigurationError, [ConfigurationError::Problem.new(:access_log, origin, e.message)]
    end

    # The descriptor, or nil for no log.
    def fileno
      file? ? @file.fileno : ($stdout.fileno || 1 if @path)
    end

    # Whether the log is a file, which can be rotated.
    def file? = !@path.nil? && @path != "-"

    def reopen
      @file.reopen(@path, "a")
    rescue SystemCallError
      nil # the folder is gone: goes on with the open file
    end

    def close
      @file&.close
    end

    private

    # In append mode the lines of several processes do not overwrite each other.
    def open_file
      @path = File.expand_path(@path)
      File.open(@path, "a")
    end
  end
end
