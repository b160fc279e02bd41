# frozen_string_literal: true

require "net/http"

module Fairlead
  module Test
    # For tests of restarts: applications that respond with the version of their code.
    module Restarts
      # Responds with the version, read from the file at the time of loading, and its process.
      VERSIONED = <<~'RUBY'
        VERSION = File.read("version").strip
        raise "this code is broken" if VERSION == "broken"

        run ->(_env) { [200, {}, ["#{VERSION} #{Process.pid}"]] }
      RUBY

      # Starts a server with the application of version "1".
      def versioned(*arguments, app: VERSIONED, files: {}, **options)
        serve(app, *arguments, files: { "version" => "1", **files }, **options)
      end

      # Returns the version of the application that responds.
      def version(server, path = "/") = answer(server, path).split.first

      def answer(server, path = "/") = Net::HTTP.start("127.0.0.1", server.port) { |http| http.get(path, "connection" => "close").body }

      # Waits for the log line about the end of that many restarts.
      def restarted(server, kind = "phased restart", times: 1)
        wait_until("the restart", seconds: 30) { server.stdout.scan(/#{kind}: done/).size == times }
      end

      # Sends requests as fast as possible until the block has returned; returns the failures.
      def under_load(server)
        failures = []
        ending = false
        clients = Array.new(4) { Thread.new { send_until(server, failures) { ending } } }
        yield
        ending = true
        clients.each(&:join)
        failures
      end

      private

      # When the server closes its connection, a client opens another one, like a browser.
      def send_until(server, failures)
        until yield
          Net::HTTP.start("127.0.0.1", server.port, max_retries: 0) do |http|
            loop do
              response = http.get("/")
              failures << response.code unless response.code == "200"
              break if yield || response["connection"] == "close"
            end
          end
        end
      rescue SystemCallError, IOError, Timeout::Error => e
        failures << e
      end
    end
  end
end
