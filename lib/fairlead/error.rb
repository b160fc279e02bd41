# frozen_string_literal: true

# The errors that Fairlead raises. Messages are for people; code reads the attributes.
module Fairlead
  # The superclass of most errors.
  class Error < StandardError
    # The name of an internal Ruby function in the message of a SystemCallError.
    FUNCTION = / @ \w+(?= - |\z)/
    private_constant :FUNCTION

    # One line about any exception, without internal Ruby functions and without the receiver in the message of a NameError.
    #
    # @param exception [Exception]
    # @return [String]
    def self.sum_up(exception)
      message = plain(exception).lines.first.to_s.strip
      message = message.sub(/ for (?:#<|an instance of |the ).*/, "") if exception.is_a?(NameError)
      "#{message} (#{exception.class})"
    end

    # The message without internal Ruby functions.
    #
    # @param exception [Exception]
    # @return [String] "Permission denied - /path"
    def self.plain(exception)
      message = SystemText.shown(exception.message)
      exception.is_a?(SystemCallError) ? message.sub(FUNCTION, "") : message
    end

    # The message without the file, for a text that names the file itself.
    #
    # @param exception [Exception]
    # @return [String] "Permission denied"
    def self.reason(exception)
      message = SystemText.shown(exception.message)
      exception.is_a?(SystemCallError) ? message.sub(/#{FUNCTION}.*/m, "") : message
    end
  end

  # The configuration is wrong. Lists all problems at once.
  class ConfigurationError < Error
    # +option+: its name, or nil. +origin+: the source ("--workers", "config/fairlead.rb:3").
    Problem = Struct.new(:option, :origin, :message) do
      # If the origin is a flag, it already names the option.
      def to_s
        name = option unless origin.to_s.start_with?("-")
        [origin, name, message].compact.map { |text| SystemText.shown(text) }.join(": ")
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
    # @param in_use [Boolean] whether another socket listens there
    def initialize(address, reason, in_use: false)
      @address = address
      @in_use = in_use
      super("cannot listen on #{SystemText.shown(address)}: #{SystemText.shown(reason)}")
    end

    # @return [Boolean] whether another socket listens there
    def in_use? = @in_use
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
      super("pid file #{SystemText.shown(path)}: #{reason}")
    end
  end

  # The state file cannot be written.
  class StateFileError < Error
    # @return [String]
    attr_reader :path

    # @param path [String]
    # @param reason [String]
    def initialize(path, reason)
      @path = path
      super("state file #{SystemText.shown(path)}: #{reason}")
    end
  end

  # A plugin cannot be found or loaded.
  class PluginError < Error
    # @return [String]
    attr_reader :name

    # @param name [String]
    # @param reason [String]
    def initialize(name, reason)
      @name = name
      super("plugin #{name}: #{reason}")
    end
  end

  # The application (config.ru, or a file it loads) could not be loaded. If it raised an exception, that is the +cause+.
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
      super("#{[SystemText.shown(path), line].compact.join(":")}: #{SystemText.shown(reason)}")
    end
  end

  # The process cannot open any more files or sockets.
  class DescriptorError < Error
    # The exceptions of Ruby for that error.
    SYSTEM_ERRORS = [Errno::EMFILE, Errno::ENFILE].freeze

    # @param error [SystemCallError] one of SYSTEM_ERRORS
    def initialize(error)
      super("too few descriptors, \"ulimit -n\" is #{Process.getrlimit(:NOFILE).first}: #{Error.reason(error)}")
    end
  end

  # The system has no room for another thread.
  class ThreadLimitError < Error
    # Ruby has no class for it.
    START = "can't create Thread"

    # @param error [ThreadError]
    def initialize(error)
      super("no room for another thread, \"ulimit -u\" is #{Process.getrlimit(:NPROC).first}: #{error.message}; raise that limit of the user, " \
            "TasksMax of systemd, or pids of the container")
    end
  end

  # The system lacks descriptors or threads when a process starts.
  module Shortage
    # For `rescue`: true if the exception is an Error or is caused by a shortage.
    def self.===(error) = error.is_a?(Error) || !error_of(error).nil?

    # The Error that says what to do.
    def self.to_error(error) = error.is_a?(Error) ? error : error_of(error)

    def self.error_of(error)
      case error
      when *DescriptorError::SYSTEM_ERRORS then DescriptorError.new(error)
      when ThreadError then ThreadLimitError.new(error) if error.message.start_with?(ThreadLimitError::START)
      end
    end
    private_class_method :error_of
  end

  # The native extension, or the load tool, is not built.
  class ExtensionError < Error; end

  # Raised by a stream if it is closed or its client has disconnected. It is an IOError, as applications expect.
  class ClosedError < IOError; end

  # Raised in a request that still runs when the server has waited for +shutdown_timeout+; the client gets a 503. It is not a
  # StandardError, so that a rescue in the application does not stop it.
  class ForcedShutdown < Interrupt; end

  # Raised by objects of a response (the block of +each+, +rack.hijack+, +rack.early_hints+) if the application uses them after
  # the response has ended, or in a forked process.
  class FinishedError < IOError; end
end
