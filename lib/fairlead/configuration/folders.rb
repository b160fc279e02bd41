# frozen_string_literal: true

module Fairlead
  class Configuration
    # The places of the files and sockets that a server makes. The folders must exist before the start. It changes nothing.
    class Folders
      # The options that name a file. The access log may be "-" too: standard output.
      FILES = %i[access_log pid_file state_path].freeze

      class << self
        # The reason why nothing can be written to the file at +path+, which is absolute; or nil.
        def reason_against(path)
          folder = File.dirname(path)
          return "there is no folder #{folder}" if missing?(folder)
          return "Is a directory" if File.directory?(path)

          "Permission denied" unless File.exist?(path) ? File.writable?(path) : File.writable?(folder)
        end

        private

        # False if the folder is only hidden from this user.
        def missing?(folder)
          !File.stat(folder).directory?
        rescue SystemCallError => e
          e.is_a?(Errno::ENOENT)
        end
      end

      # +sockets+: [[option, absolute path], …]. The current folder is the configuration's directory.
      def initialize(configuration, sockets)
        @configuration = configuration
        @sockets = sockets
      end

      # A Problem for each file that cannot be made.
      def problems
        [*files, *@sockets].filter_map do |option, path|
          reason = self.class.reason_against(path)
          ConfigurationError::Problem.new(option, @configuration.origin(option), reason) if reason
        end
      end

      private

      def files
        paths = FILES.to_h { |option| [option, @configuration[option]] }.reject { |_, path| path.nil? || path == "-" }
        paths.transform_values { |path| SystemText.absolute(path) }.to_a
      end
    end
  end
end
