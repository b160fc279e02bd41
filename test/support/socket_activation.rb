# frozen_string_literal: true

require "socket"
require_relative "server_process"

module Fairlead
  module Test
    # A server that the real systemd-socket-activate starts at the first connection to one of +addresses+ ("127.0.0.1:80",
    # "/run/app.sock"). Otherwise like ServerProcess.
    class SocketActivation < ServerProcess
      PROGRAM = "systemd-socket-activate"

      def self.available? = ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, PROGRAM)) }

      # A TCP port that was free just now.
      def self.free_port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }

      def initialize(config_ru, *arguments, addresses:, bind: nil, **options)
        @addresses = addresses
        super(config_ru, *arguments, bind: bind, **options)
      end

      # Waits until the sockets are open.
      def launch
        super
        wait_until("systemd-socket-activate to listen") { stderr.scan("Listening on").size == @addresses.size || exited? }
        self
      end

      private

      # systemd-socket-activate passes hardly any variable on.
      def command
        variables = process_environment.filter_map { |name, value| ["-E", "#{name}=#{value}"] if value }
        [PROGRAM, *@addresses.flat_map { |address| ["-l", address] }, *variables.flatten, *super]
      end
    end
  end
end
