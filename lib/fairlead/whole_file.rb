# frozen_string_literal: true

module Fairlead
  # Files that appear whole or not at all. In a folder where others may write too, such as /tmp, another user cannot prepare a
  # file or a link to receive the text: the temporary file is always new, under a name that cannot be guessed.
  module WholeFile
    # The end of the name of a temporary file.
    TEMPORARY = /\.\h{16}~\z/

    FLAGS = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW

    # Replaces the file at +path+. +durable+: on the disk before it appears. A device, such as /dev/null, stays, and gets the
    # text. Raises SystemCallError.
    def self.write(path, text, mode:, durable: false)
      return File.write(path, text.to_s) if device?(path)

      temporary = "#{path}.#{Random.urandom(8).unpack1("H*")}~"
      File.open(temporary, FLAGS, mode) do |file|
        file.chmod(mode)
        file.write(text)
        file.fsync if durable
      end
      File.rename(temporary, path)
      whole = true
    ensure
      remove(temporary) if temporary && !whole # a signal may have raised, too
    end

    def self.remove(path)
      File.unlink(path)
    rescue SystemCallError
      nil
    end

    # True for a device, and for a link to one.
    def self.device?(path) = File.chardev?(path) || File.blockdev?(path)
    private_class_method :remove, :device?
  end
end
