# frozen_string_literal: true

require "stringio"

module Fairlead
  # +rack.input+ of a request without a body: one frozen object for all requests. For a body in memory, the extension makes a
  # StringIO, for a body on disk a FileInput.
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

  # +rack.input+ of a large body: a temporary file without a name, so it has no path.
  class FileInput < IO
    def size = stat.size
    alias length size

    # IO has these since Ruby 3.2, and some code would open the path.
    %i[path to_path].each { |name| undef_method(name) if method_defined?(name) }

    # Called by the extension, which owns the descriptor until it sets +autoclose+: if this is interrupted, no other object may
    # close it.
    def self.for_fd(descriptor)
      super(descriptor, "rb", autoclose: false)
    end
  end
end
