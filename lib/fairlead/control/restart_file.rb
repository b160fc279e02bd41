# frozen_string_literal: true

module Fairlead
  module Control
    # Restarts the server when somebody touches a file, as `rails restart` does: Puma's plugin `tmp_restart`. The file need not
    # exist.
    class RestartFile
      PATH = "tmp/restart.txt"

      # How often it is looked at, in seconds.
      INTERVAL = 2

      # +server+: has #ask.
      def initialize(server, path: File.expand_path(PATH))
        @server = server
        @path = path
        @touched_at = touched_at
      end

      # Asks for a restart if the file is newer than the last time.
      def look
        touched_at = self.touched_at
        return if touched_at <= @touched_at

        @touched_at = touched_at
        @server.ask(:restart)
      end

      private

      NEVER = Time.at(0)
      private_constant :NEVER

      def touched_at
        File.mtime(@path)
      rescue SystemCallError
        NEVER
      end
    end
  end
end
