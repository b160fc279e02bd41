# frozen_string_literal: true

require "json"
require "rack"

module Fairlead
  module Test
    # Rackup files for test cases that watch the server from inside an application. An application reports to the test with
    # `Notes.add("text")`.
    module RackApps
      PRELUDE = <<~'RUBY'
        require "json"
        require "rack"
        require "rack/lint"

        module Notes
          def self.add(text) = File.write("notes", "#{text}\n", mode: "a")
        end

        # Checks the request as Rack::Lint does and leaves the response alone.
        class RequestLint
          def initialize(app)
            @app = app
            @lint = Rack::Lint.new(->(_env) { [200, { "content-type" => "text/plain" }, []] })
          end

          def call(env)
            @lint.call(env.dup)
            @app.call(env)
          end
        end
      RUBY

      # Returns an application with +code+ as the body of its #call(env), under Rack::Lint. +setup+ comes before.
      def linted(code, setup: "")
        "#{PRELUDE}#{setup}\nuse Rack::Lint\nrun lambda { |env|\n#{code}\n}\n"
      end

      # As above, for responses that Rack::Lint would refuse or replace: checks the request only.
      def unlinted(code, setup: "")
        "#{PRELUDE}#{setup}\nuse RequestLint\nrun lambda { |env|\n#{code}\n}\n"
      end

      # Returns the application's notes so far.
      def notes(server)
        path = server.path("notes")
        File.exist?(path) ? File.readlines(path, chomp: true) : []
      end

      # Waits until the application has written at least +count+ notes, and returns them.
      def wait_for_notes(server, count)
        wait_until("#{count} notes") { (noted = notes(server)).size >= count && noted }
      end

      # Returns true if the loaded rack is at least that release.
      def rack?(release) = Gem::Version.new(Rack.release) >= Gem::Version.new(release)
    end

    # For test cases in test/integration/http or test/integration/rack.
    module HttpServing
      include Servers
      include HttpClients
      include RackApps
    end
  end
end
