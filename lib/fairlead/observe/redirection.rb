# frozen_string_literal: true

module Fairlead
  # The files that replace standard output and standard error (`redirect_stdout`, Puma's `stdout_redirect`) for all output of
  # this process and its children. Only for the command: a server inside another program does not change the streams.
  class Redirection
    STREAMS = { redirect_stdout: STDOUT, redirect_stderr: STDERR }.freeze
    NAMES = { redirect_stdout: "standard output", redirect_stderr: "standard error" }.freeze

    class << self
      # Redirects the streams as configured. Raises ConfigurationError.
      def start(configuration) = new(configuration).tap(&:start)

      # Problems with the files.
      def problems(configuration)
        paths(configuration).filter_map do |option, path|
          reason = Configuration::Folders.reason_against(path)
          ConfigurationError::Problem.new(option, configuration.origin(option), reason) if reason
        end
      end

      # option => absolute path
      def paths(configuration)
        given = STREAMS.keys.to_h { |option| [option, configuration[option]] }.compact
        given.transform_values { |path| SystemText.absolute(path, configuration.directory) }
      end
    end

    def initialize(configuration)
      @configuration = configuration
      @files = {}
    end

    # If the streams are redirected already, another start does not change the files: a process that this server has started has
    # them.
    def start
      self.class.paths(@configuration).each do |option, path|
        stream = STREAMS.fetch(option)
        goes_on = File.identical?(stream, path)
        @files[option] = redirect(option, path, truncate: !goes_on && !truncated?(path))
        mark(stream) unless goes_on
      end
    end

    # "standard output" => LogFile
    def files = @files.transform_keys(&NAMES)

    private

    def redirect(option, path, truncate:)
      LogFile.new(path, stream: STREAMS.fetch(option), truncate: truncate)
    rescue SystemCallError => e
      raise ConfigurationError, [ConfigurationError::Problem.new(option, @configuration.origin(option), Error.reason(e))]
    end

    # Both streams may go to one file, which is emptied once. With redirect_append it never is.
    def truncated?(path) = @configuration.redirect_append? || @files.any? { |_, file| file.path == path }

    # A line that marks the start of this run of the server.
    def mark(stream)
      stream.sync = true
      stream.write("=== fairlead #{VERSION} starts: #{Time.now} ===\n")
    rescue SystemCallError # a full disk
      nil
    end
  end
end
