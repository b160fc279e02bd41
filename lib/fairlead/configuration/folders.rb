# frozen_string_literal: true

module Fairlead
  class Configuration
    # Finds the files and sockets of a configuration that cannot be made, because their folder is missing. It changes nothing.
    class Folders
      FILES = %i[pid_file access_log state_path].freeze
      ADDRESSES = %i[bind control_url health_url].freeze

      # +configuration+: its paths are relative to the current folder.
      def initialize(configuration)
        @configuration = configuration
      end

      # Raises ConfigurationError.
      def check
        problems = paths.filter_map { |name, path| problem(name, File.dirname(File.expand_path(path))) }
        raise ConfigurationError, problems if problems.any?
      end

      private

      # [[option, path], …]
      def paths
        files = FILES.map { |name| [name, @configuration[name]] }.reject { |_, path| path.nil? || path == "-" }
        sockets = ADDRESSES.flat_map { |name| Array(@configuration[name]).map { |address| [name, socket(address)] } }
        files + sockets.select(&:last)
      end

      def socket(address)
        binding = Binding.parse(address) unless address == "auto"
        binding.path if binding.is_a?(Binding::Unix)
      end

      def problem(name, folder)
        reason = "there is no folder #{folder}" unless File.directory?(folder)
        reason ||= "nothing may be written to #{folder}" unless File.writable?(folder)
        ConfigurationError::Problem.new(name, @configuration.origin(name), reason) if reason
      end
    end
  end
end
