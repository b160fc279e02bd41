# frozen_string_literal: true

module Fairlead
  # A file to which lines are appended through a descriptor that always has the same number, so that native code may know the
  # number only. After log rotation has moved the file, it is reopened under its path. (The
  # supervisor's own streams are in crates/supervisor/src/standard_streams.rs.)
  class LogFile
    attr_reader :path

    # +stream+: the IO that writes to the file from now on; nil for a new one. +truncate+: true to empty the file, unless
    # another server writes to it. Raises SystemCallError.
    def initialize(path, stream: nil, truncate: false)
      @path = SystemText.absolute(path)
      @stream = stream
      open_file(truncate: truncate)
    end

    def fileno = @stream.fileno

    # Raises SystemCallError, for example if the folder is gone; the old file then stays in use.
    def reopen = open_file

    # Leaves the file. The number stays taken as long as this object lives: late native code writes to /dev/null, and not to a
    # file that has got the same number.
    def close = @stream.reopen(File::NULL, "a")

    private

    # Each process of a server shares a lock of the file as long as it writes to it. So a second start, by mistake, does not get
    # the lock alone, and does not empty the file.
    def lock(file, truncate)
      file.truncate(0) if truncate && file.flock(File::LOCK_EX | File::LOCK_NB)
      file.flock(File::LOCK_SH | File::LOCK_NB)
    rescue Errno::EINVAL, Errno::ENOLCK, Errno::EOPNOTSUPP
      nil # a terminal, a pipe, or a file system without locks
    end

    # In append mode the lines of several processes do not overwrite each other.
    def open_file(truncate: false)
      file = File.open(@path, File::WRONLY | File::CREAT | File::APPEND)
      lock(file, truncate)
      return @stream = file unless @stream

      file.sync = @stream.sync # the stream takes it over
      @stream.reopen(file) # replaces the file in one step; with a path, a standard stream would be closed first
      file.close
    end
  end
end
