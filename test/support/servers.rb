# frozen_string_literal: true

require_relative "server_process"

module Fairlead
  module Test
    # For test cases that start servers: ends every server after the test, and prints the log if the test failed.
    module Servers
      include Waiting

      # Starts a server (arguments as for ServerProcess.new) and returns it once it is ready.
      def serve(config_ru, *arguments, **options)
        launch(config_ru, *arguments, **options, &:start)
      end

      # Starts a server without waiting: for starts that should fail.
      def launch(config_ru, *arguments, **options)
        server = own(ServerProcess.new(config_ru, *arguments, **options))
        block_given? ? yield(server) : server.launch
        server
      end

      # Ends a server after the test that the test has made itself; returns it.
      def own(server)
        (@servers ||= []) << server
        server
      end

      # Ends a server, and asserts that it does not wait for its shutdown timeout, which is longer than the time allowed
      # here.
      def assert_ends_before_its_timeout(server)
        assert_equal 0, server.stop.exitstatus
        refute_match(/did not finish within/, server.stderr)
      end

      # Waits until a server has logged a String or a match of a Regexp: a separate thread writes the log, perhaps after the
      # client has received its response.
      def assert_logged(expected, server, seconds: 10)
        wait_until("#{expected.inspect} in the log", seconds: seconds) { server.stderr[expected] }
        pass
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
