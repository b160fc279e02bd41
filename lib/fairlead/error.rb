# frozen_string_literal: true

# What can go wrong before a request is served. The classes tell who has to act, the messages what to do; code reads the
# attributes instead.
module Fairlead
  # The root of everything Fairlead raises.
  class Error < StandardError
    # An exception of other code in one line, without the receiver that a NameError shows.
    #
    # @param exception [Exception]
    # @return [String]
    def self.sum_up(exception)
      message = exception.message.to_s.lines.first.to_s.strip
      message = message.sub(/ for (?:#<|an instance of |the ).*/, "") if exception.is_a?(NameError)
      "#{message} (#{exception.class})"
    end
  end

  # The options are wrong. Lists every problem at once, so that nobody has to fix them one start at a time.
  class ConfigurationError < Error
    # +option+: the name in the table, or nil. +origin+: the source ("--workers", "config/fairlead.rb:3").
    Problem = Struct.new(:option, :origin, :message) do
      # A flag says which option it is.
      def to_s
        name = option unless origin.to_s.start_with?("-")
        [origin, name, message].compact.join(": ")
      end
    end

    # @return [Array<Problem>]
    attr_reader :problems

    # @param problems [Array<Problem>]
    def initialize(problems)
      @problems = problems.dup.freeze
      super(problems.map(&:to_s).join("\n"))
    end
  end

  # A binding cannot be parsed or opened.
  class BindError < Error
    # @return [String] the binding, as it was written
    attr_reader :address

    # @param address [String]
    # @param reason [String]
    def initialize(address, reason)
      @address = address
      super("cannot listen on #{address}: #{reason}")
    end
  end

  # The pid file belongs to another running server, or cannot be written.
  class PidFileError < Error
    # @return [String]
    attr_reader :path

    # @return [Integer, nil] the process that holds the file
    attr_reader :pid

    # @param path [String]
    # @param reason [String]
    # @param pid [Integer, nil]
    def initialize(path, reason, pid: nil)
      @path = path
      @pid = pid
      super("pid file #{path}: #{reason}")
    end
  end

  # The application (config.ru, or a file it loads) raised while it was loaded; the exception is the +cause+.
  class AppLoadError < Error
    # @return [String] the file in which it was raised
    attr_reader :path

    # @return [Integer, nil] the line, if it is known
    attr_reader :line

    # @param path [String]
    # @param line [Integer, nil]
    # @param reason [String]
    def initialize(path, line, reason)
      @path = path
      @line = line
      super("#{[path, line].compact.join(":")}: #{reason}")
    end
  end

  # The process may open no more files and sockets.
  class DescriptorError < Error
    # What Ruby raises then.
    SYSTEM_ERRORS = [Errno::EMFILE, Errno::ENFILE].freeze

    # @param error [SystemCallError] one of SYSTEM_ERRORS
    def initialize(error)
      super("too few descriptors, \"ulimit -n\" is #{Process.getrlimit(:NOFILE).first}: #{error.message}")
    end
  end

  # The native extension is not there.
  class ExtensionError < Error; end

  # Raised by a stream that is closed or whose client is gone; an IOError, as applications expect.
  class ClosedError < IOError; end

  # Raised by objects of a response (the block of +each+, +rack.hijack+, +rack.early_hints+) that are used after it has ended,
  # or in a forked process.
  class FinishedError < IOError; end
end
