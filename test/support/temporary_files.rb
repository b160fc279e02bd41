# frozen_string_literal: true

module Fairlead
  module Test
    # The temporary files of a server. They have no name, and show only among its descriptors.
    module TemporaryFiles
      module_function

      # Returns their size on disk, in bytes, for the files in +folder+ of the server's folder.
      def temporary_bytes(server, folder)
        temporary_files(server, folder).sum { |path| bytes_of(path) }
      end

      def temporary_files(server, folder)
        Dir.children("/proc/#{server.serving_pid}/fd").map { |fd| "/proc/#{server.serving_pid}/fd/#{fd}" }.select do |path|
          File.readlink(path).start_with?("#{server.path(folder)}/")
        rescue Errno::ENOENT
          false
        end
      end

      def bytes_of(path)
        File.stat(path).blocks * 512
      rescue Errno::ENOENT
        0
      end
    end
  end
end
