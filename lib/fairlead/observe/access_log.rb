# frozen_string_literal: true

module Fairlead
  # Where requests are logged. The engine writes the lines; this is the open file. HUP reopens it under the same
  # descriptor after log rotation has moved it.
  class AccessLog
    # +path+: "-" for standard output, nil for no log. Raises ConfigurationError, naming +origin+, when it cannot be opened.
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

    # Whether there is a file that can be moved away.
    def file? = !@path.nil? && @path != "-"

    def reopen
      @file.reopen(@path, "a")
    rescue SystemCallError
      nil # the folder is gone: the file that is still open serves on
    end

    def close
      @file&.close
    end

    private

    # Appending keeps the lines of several processes whole.
    def open_file
      @path = File.expand_path(@path)
      File.open(@path, "a")
    end
  end
end
