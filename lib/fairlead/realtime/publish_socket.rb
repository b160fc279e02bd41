# frozen_string_literal: true

module Fairlead
  # The place of the publish socket: the server listens there, and processes beside it find it there.
  module PublishSocket
    # Below the folder of the application.
    NAME = "tmp/sockets/fairlead.sock"

    # Names the subscription adapter of Action Cable.
    SETTINGS = "config/cable.yml"

    # Replaces the usual place, for the server and for processes beside it.
    VARIABLE = "FAIRLEAD_PUBLISH_SOCKET"

    # The values that mean no socket.
    NONE = [false, "false", "none"].freeze

    class << self
      # The usual path for the application in the folder +root+.
      def in(root) = File.join(SystemText.absolute(root.to_s), NAME)

      # The path for the server of that application; nil if the application broadcasts through another server.
      def default(root)
        self.in(root) if File.binread(File.join(root, SETTINGS)).include?("fairlead")
      rescue SystemCallError
        nil
      end

      # The path for a process beside the server. +given+: a setting that replaces the environment.
      def find(root, given = nil, environment: ENV)
        given = environment[VARIABLE].to_s if given.nil?
        return if NONE.include?(given)

        given == "" ? self.in(root) : SystemText.absolute(given, root.to_s)
      end

      # An address of Binding for a socket that no other user can use.
      def address(path) = "unix://#{path.b.gsub(/[%?\n]/n) { |byte| format("%%%02X", byte.ord) }}?umask=0177"
    end
  end
end
