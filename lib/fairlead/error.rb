# frozen_string_literal: true

# What can go wrong before a request is served, told apart by who must act. Every message is one that a person can act
# on; code reads the attributes instead.
module Fairlead
  # The root of everything Fairlead raises.
  class Error < StandardError
    # An exception of somebody else in one line. A NameError would show its whole receiver.
    def self.sum_up(exception)
      message = exception.message.to_s.lines.first.to_s.strip
      message = message.sub(/ for (?:#<|an instance of |the ).*/, "") if exception.is_a?(NameError)
      "#{message} (#{exception.class})"
    end
  end

  # The options do not make sense. Lists every problem at once, so that nobody mends them one start at a time.
  class ConfigurationError < Error
    # +option+: the name as the table has it, or nil. +origin+: who said so ("--workers", "config/fairlead.rb:3").
    Problem = Struct.new(:option, :origin, :message) do
      # A flag says which option it is.
      def to_s
        name = option unless origin.to_s.start_with?("-")
        [origin, name, message].compact.join(": ")
      end
    end

    attr_reader :problems

    def initialize(problems)
      @problems = problems.dup.freeze
      super(problems.map(&:to_s).join("\n"))
    end
  end

  # A binding cannot be parsed or opened.
  class BindError < Error
    # The binding, as it was written.
    attr_reader :address

    def initialize(address, reason)
      @address = address
      super("cannot listen on #{address}: #{reason}")
    end
  end

  # The pid file belongs to another running server, or cannot be written.
  class PidFileError < Error
    # +pid+: the process that holds the file, or nil.
    attr_reader :path, :pid

    def initialize(path, reason, pid: nil)
      @path = path
      @pid = pid
      super("pid file #{path}: #{reason}")
    end
  end

  # The application (config.ru, or a file it loads) raised while it was loaded; the exception is the +cause+.
  class AppLoadError < Error
    # +line+: where in +path+ it went wrong, or nil when that is unknown.
    attr_reader :path, :line

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

    # +error+: one of SYSTEM_ERRORS.
    def initialize(error)
      super("too few descriptors, \"ulimit -n\" is #{Process.getrlimit(:NOFILE).first}: #{error.message}")
    end
  end

  # The native extension is not there.
  class ExtensionError < Error; end

  # Raised by a stream that is closed or whose client is gone; an IOError, as applications expect.
  class ClosedError < IOError; end

  # Raised by what belongs to an answer (the blocks of +each+, +rack.hijack+, +rack.early_hints+) when it was kept and is used
  # after its time, or in a forked process.
  class FinishedError < IOError; end
end
