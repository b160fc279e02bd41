# frozen_string_literal: true

require_relative "server_process"

module Fairlead
  module Test
    # A server of a user without an entry in /etc/passwd and without HOME, as with `docker run --user 12345`. Needs root.
    class AsStranger < ServerProcess
      ID = 12_345

      BECOME = "Process::GID.change_privilege(#{ID}); Process::UID.change_privilege(#{ID}); exec(*ARGV)".freeze

      def launch
        File.chown(ID, ID, directory, *Dir.glob(path("**/*")))
        super
      end

      private

      def command = [RbConfig.ruby, "-e", BECOME, *super]

      def process_environment = super.merge("HOME" => nil, "XDG_STATE_HOME" => nil, "STATE_DIRECTORY" => nil)
    end
  end
end
