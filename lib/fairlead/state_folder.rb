# frozen_string_literal: true

require "etc"

module Fairlead
  # A folder for files that outlive the server and that only its owner may read, such as keys. Files appear whole or not at all,
  # and are on the disk before other processes see them. Nothing is written to a folder where another user could replace it.
  # Nothing is read from another user's folder, and no link of another user is followed: root could read and write everything
  # there.
  class StateFolder
    FOLDER_MODE = 0o700
    FILE_MODE = 0o600

    # The reason why there is no usual place.
    HOMELESS = "this user has no home folder"

    # Mode bits that let other users replace files in a folder.
    OPEN_TO_OTHERS = 0o022

    # The age in seconds from which a temporary file counts as left over from a killed process.
    LEFT_OVER = 60

    class << self
      # The usual place for +name+: in the folder that systemd keeps for the service (StateDirectory=), or in the user's folder
      # (the XDG Base Directory Specification). It must not be in a release, which the next deployment replaces. nil for a user
      # without a home folder, such as a number that a container was given.
      def default(name, environment: ENV)
        folder = SystemText.decode(environment["STATE_DIRECTORY"].to_s).split(":").first || of_user(environment)
        File.join(folder, name) if folder
      end

      private

      # The specification says to ignore a relative path.
      def absolute(path) = (SystemText.decode(path) if path.to_s.start_with?("/"))

      def of_user(environment)
        state = absolute(environment["XDG_STATE_HOME"]) || home(environment)&.then { |home| File.join(home, ".local/state") }
        state && File.join(state, "fairlead")
      end

      def home(environment)
        absolute(environment["HOME"]) || Etc.getpwuid&.dir
      rescue ArgumentError # the user has no entry in /etc/passwd
        nil
      end
    end

    attr_reader :path

    def initialize(path)
      @path = SystemText.absolute(path)
    end

    # True if files can be written there; the folder may still be missing.
    def usable? = reason_against.nil?

    # The reason why no files can be written, as far as known without writing; or nil.
    def reason_against
      existing = path
      existing = File.dirname(existing) until File.exist?(existing)
      return "#{existing} is no folder" unless File.directory?(existing)
      return "#{existing} cannot be written to" unless File.writable?(existing)

      check(path) if existing == path
      nil
    rescue SystemCallError => e
      Error.reason(e)
    end

    # The path of +name+ in the folder.
    def join(*name) = File.join(path, *name)

    # The text of a file, or nil. +most+: the largest number of bytes to read. Does not wait for pipes and other special files.
    def read(*name, most: nil)
      levels(join(*name)).each { |level| refuse_strangers(level) }
      File.open(join(*name), File::RDONLY | File::NONBLOCK) do |file|
        raise Errno::EISDIR if file.stat.directory?
        raise Errno::EINVAL, "it is no regular file" unless file.stat.file?

        file.read(most) || ""
      end
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

    # The names of the files in a subfolder.
    def names(*folder)
      Dir.children(join(*folder))
    rescue Errno::ENOENT, Errno::ENOTDIR
      []
    end

    # Deletes temporary files that killed processes have left behind: they may contain keys.
    def sweep(now: Time.now)
      Dir.glob("**/*~", File::FNM_DOTMATCH, base: path).grep(WholeFile::TEMPORARY).each { |name| sweep_file(name, now - LEFT_OVER) }
    end

    # Deletes a file that has not changed since +time+.
    def sweep_file(*name, time)
      delete(*name) if File.lstat(join(*name)).mtime < time
    rescue Errno::ENOENT
      nil
    end

    # Calls the block unless another process is in such a block for this folder; then it returns false, or waits for the other
    # process. +name+: of the locked file.
    def exclusively(*name, wait: false)
      target = join(*(name.empty? ? ["lock"] : name))
      make(path)
      make(File.dirname(target))
      File.open(target, File::RDWR | File::CREAT | File::NOFOLLOW, FILE_MODE) do |file|
        next false unless file.flock(wait ? File::LOCK_EX : File::LOCK_EX | File::LOCK_NB)

        begin
          yield
        ensure
          file.flock(File::LOCK_UN) # a process that was forked meanwhile has the descriptor, too
        end
      end
    end

    private

    def make(folder)
      return check(folder) if File.directory?(folder)

      make(File.dirname(folder))
      Dir.mkdir(folder, FOLDER_MODE)
    rescue Errno::EEXIST
      check(folder)
    end

    # Raises EACCES if another user could change files in the folder, or the destination of its path.
    def check(folder)
      levels(folder).each do |level|
        refuse_strangers(level)
        next unless File.stat(level).mode.anybits?(OPEN_TO_OTHERS)

        raise Errno::EACCES, "other users may write to #{level}; `chmod go-w` keeps them out"
      end
    end

    # The existing folders from this one down to +target+. Folders above this one are not ours.
    def levels(target)
      below = []
      while target == path || target.start_with?("#{path}/")
        below.unshift(target)
        target = File.dirname(target)
      end
      below
    end

    # A file in our folder may belong to any user: only we can have put it there.
    def refuse_strangers(place)
      own = File.lstat(place)
      raise Errno::EACCES, "#{place} is a link of another user" if own.symlink? && stranger?(own)

      led = File.stat(place)
      raise Errno::EACCES, "#{place} belongs to another user" if led.directory? && stranger?(led)
    end

    def stranger?(stat) = ![0, Process.euid].include?(stat.uid)
  end
end
