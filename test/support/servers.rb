# frozen_string_literal: true

require_relative "server_process"

module Fairlead
  module Test
    # For test cases that start servers: ends every one of them after the test and prints the log of a failed one.
    module Servers
      include Waiting

      # Starts a server (arguments as ServerProcess.new) and returns it once it is ready.
      def serve(config_ru, *arguments, **options)
        launch(config_ru, *arguments, **options, &:start)
      end

      # Starts a server without waiting: for starts that are expected to fail.
      def launch(config_ru, *arguments, **options)
        server = ServerProcess.new(config_ru, *arguments, **options)
        (@servers ||= []) << server
        block_given? ? yield(server) : server.launch
        server
      end

      def after_teardown
        super
      ensure
        (@servers || []).each do |server|
          server.kill_all
          $stderr.puts(server.log) unless passed? || skipped?
          server.destroy
        end
      end
    end
  end
end
