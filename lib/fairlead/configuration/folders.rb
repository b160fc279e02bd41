# frozen_string_literal: true

module Fairlead
  class Configuration
    # The folders of the files and sockets that a server makes. They have to be there before the start. It changes nothing.
    class Folders
      # The options that name a file. The access log may be "-" too: standard output.
      FILES = %i[access_log pid_file state_path].freeze

      # The options with addresses, some of which are Unix sockets.
      ADDRESSES = %i[bind control_url health_url].freeze

      # Raises ConfigurationError if a folder is missing. The current folder is the configuration's directory. +sockets+: whether
      # those of sockets have to be there, which another process may have opened.
      def self.check(configuration, sockets: true)
        problems = new(configuration).problems(sockets)
        raise ConfigurationError, problems if problems.any?
      end

      def initialize(configuration)
        @configuration = configuration
      end

      # A Problem for each file with a missing folder.
      def problems(with_sockets)
        [*files, *(sockets if with_sockets)].filter_map do |option, path|
          folder = File.dirname(File.expand_path(path))
          next unless missing?(folder)

          ConfigurationError::Problem.new(option, @configuration.origin(option), "there is no folder #{folder}")
        end
      end

      private

      # Not if it is only hidden from this user.
      def missing?(folder)
        !File.stat(folder).directory?
      rescue SystemCallError => e
        e.is_a?(Errno::ENOENT)
      end

      def files
        FILES.map { |option| [option, @configuration[option]] }.reject { |_, path| path.nil? || path == "-" }
      end

      # Abstract sockets have no file.
      def sockets
        addresses = ADDRESSES.flat_map { |option| Array(@configuration[option]).map { |address| [option, address] } }
        addresses.filter_map { |option, address| (path = socket_path(address)) && [option, path] }
      end

      def socket_path(address)
        binding = Binding.parse(address) unless address == "auto"
        binding.path if binding.is_a?(Binding::Unix)
      end
    end
  end
end
