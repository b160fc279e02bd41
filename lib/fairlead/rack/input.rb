# frozen_string_literal: true

require "stringio"

module Fairlead
  # +rack.input+ of a request without a body, which is most of them: one frozen object for all. A body in memory is a
  # StringIO, one on disk a FileInput; the extension makes those.
  class EmptyInput
    def read(length = nil, buffer = nil)
      buffer&.clear
      length.nil? || length.zero? ? buffer || "".b : nil
    end

    def gets(*) = nil
    def each(*) = self
    def rewind = 0
    def size = 0
    def eof? = true
    def close = nil
    def closed? = false
    def binmode = self
    def binmode? = true
    def external_encoding = Encoding::BINARY
    def set_encoding(*) = self
    def sync = true
    def fsync = 0
    def pos = 0
    def read_nonblock(*) = raise(EOFError, "end of file reached")
    def readpartial(*) = raise(EOFError, "end of file reached")
    alias length size
    alias tell pos
  end

  EMPTY_INPUT = EmptyInput.new.freeze

  # +rack.input+ of a large body: an unlinked temporary file, so there is no path to tell.
  class FileInput < IO
    def size = stat.size
    alias length size

    # From Ruby 3.2 on an IO has these, and some would open what they name.
    %i[path to_path].each { |name| undef_method(name) if method_defined?(name) }

    # Called by the extension with a descriptor that this object owns from then on.
    def self.for_fd(descriptor)
      super(descriptor, "rb")
    end
  end
end
