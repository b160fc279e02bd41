# frozen_string_literal: true

require "etc"

module Fairlead
  # A folder for what outlives the server and is its owner's alone, such as keys. Files appear whole or not at all, and are on
  # the disk before anybody sees them.
  class StateFolder
    FOLDER_MODE = 0o700
    FILE_MODE = 0o600

    class << self
      # The usual place for +name+: in the folder that systemd keeps for the service (StateDirectory=), or in that of the user
      # (the XDG Base Directory Specification). It must not be in a release, which the next deployment replaces.
      def default(name, environment: ENV)
        folder = environment["STATE_DIRECTORY"].to_s.split(":").first
        folder ||= File.join(absolute(environment["XDG_STATE_HOME"]) || File.join(home(environment), ".local/state"), "fairlead")
        File.join(folder, name)
      end

      private

      # The specification says to ignore a relative one.
      def absolute(path) = (path if path.to_s.start_with?("/"))

      def home(environment)
        absolute(environment["HOME"]) || Etc.getpwuid&.dir || Dir.pwd
      end
    end

    attr_reader :path

    def initialize(path)
      @path = File.expand_path(path)
    end

    # The path of what is called +name+ in the folder.
    def join(*name) = File.join(path, *name)

    # The text of a file, or nil.
    def read(*name)
      File.read(join(*name))
    rescue Errno::ENOENT, Errno::ENOTDIR
      nil
    end

    # Writes a file, and makes the folders above it.
    def write(*name, text)
      target = join(*name)
      make(File.dirname(target))
      WholeFile.write(target, text, mode: FILE_MODE, durable: true)
      File.open(File.dirname(target), &:fsync)
      target
    end

    # Deletes a file, if it is there.
    def delete(*name)
      File.unlink(join(*name))
    rescue Errno::ENOENT, Errno::ENOTDIR
      nil
    end

    # The names of the files in a folder of it.
    def names(*folder)
      Dir.children(join(*folder))
    rescue Errno::ENOENT, Errno::ENOTDIR
      []
    end

    # Calls the block unless another process is in such a block for this folder: returns false then, or waits for its end.
    def exclusively(wait: false)
      make(path)
      File.open(join("lock"), File::RDWR | File::CREAT | File::NOFOLLOW, FILE_MODE) do |file|
        locked = file.flock(wait ? File::LOCK_EX : File::LOCK_EX | File::LOCK_NB)
        locked && yield
      end
    end

    private

    def make(folder)
      return if File.directory?(folder)

      make(File.dirname(folder))
      Dir.mkdir(folder, FOLDER_MODE)
    rescue Errno::EEXIST
      nil
    end
  end
end
