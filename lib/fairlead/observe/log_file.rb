# frozen_string_literal: true

module Fairlead
  # A file to which lines are appended through a descriptor that always has the same number, so that native code may know the
  # number only. After log rotation has moved the file, it is reopened under its path.
  class LogFile
    attr_reader :path

    # +stream+: the IO that writes to the file from now on; nil for one of its own. +truncate+: whether to empty the file.
    # Raises SystemCallError.
    def initialize(path, stream: nil, truncate: false)
      @path = SystemText.absolute(path)
      @stream = stream
      open_file(truncate ? File::TRUNC : 0)
    end

    def fileno = @stream.fileno

    # Raises SystemCallError if there is no such folder any more, for example; the old file then stays in use.
    def reopen = open_file

    # Leaves the file. The number stays taken for as long as this object lives: native code that is late writes to nowhere,
    # and not to what has got the number since.
    def close = @stream.reopen(File::NULL, "a")

    private

    # In append mode the lines of several processes do not overwrite each other.
    def open_file(flags = 0)
      file = File.open(@path, File::WRONLY | File::CREAT | File::APPEND | flags)
      return @stream = file unless @stream

      file.sync = @stream.sync # the stream takes it over
      @stream.reopen(file) # replaces the file in one step; with a path, a standard stream would be closed first
      file.close
    end
  end
end
