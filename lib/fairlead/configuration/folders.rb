# frozen_string_literal: true

module Fairlead
  class Configuration
    # The folders of the files that a server makes: the pid file, the state file, the access log and Unix sockets. They have to
    # be there before the start.
    class Folders
      # The options that name a file. The access log may be "-" too: standard output.
      FILES = %i[access_log pid_file state_path].freeze

      # Raises ConfigurationError if a folder is missing. The current folder is the configuration's directory.
      def self.check(configuration)
        problems = new(configuration).problems
        raise ConfigurationError, problems if problems.any?
      end

      def initialize(configuration)
        @configuration = configuration
      end

      # A Problem for each file with a missing folder.
      def problems
        [*files, *sockets].filter_map do |option, path|
          folder = File.dirname(File.expand_path(path))
          next if File.directory?(folder)

          ConfigurationError::Problem.new(option, @configuration.origin(option), "there is no folder #{folder}")
        end
      end

      private

      def files
        FILES.map { |option| [option, @configuration[option]] }.reject { |_, path| path.nil? || path == "-" }
      end

      # Abstract sockets have no file.
      def sockets
        bindings = @configuration.bind.map { |address| Binding.parse(address) }.grep(Binding::Unix)
        bindings.filter_map(&:path).map { |path| [:bind, path] }
      end
    end
  end
end
