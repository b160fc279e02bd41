# frozen_string_literal: true

require "fileutils"
require "support/http_client"
require "support/rack_apps"

module Fairlead
  module Test
    # For test cases in test/integration/files: servers with a public folder, and assertions about their responses. The
    # application behind the folder always responds 404, so that a response shows its origin.
    module FileServing
      include HttpServing

      APP = <<~'RUBY'
        run lambda { |env|
          [404, { "content-type" => "text/plain", "x-from" => "app" }, ["#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"]]
        }
      RUBY

      # Age of a test's files, unless the test sets another one: the server may treat a file that has just changed with care.
      LONG_AGO = Time.utc(2024, 2, 29, 12, 0, 0)
      LONG_AGO_HTTP = "Thu, 29 Feb 2024 12:00:00 GMT"

      # The fields of an upgrade to a WebSocket.
      UPGRADE = {
        "connection" => "upgrade", "upgrade" => "websocket", "sec-websocket-version" => "13",
        "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ=="
      }.freeze

      # Starts a server with these files in its public folder (path => content). The block gets the server before it starts.
      def serve_public(files, *arguments, app: APP, **options, &before)
        serve_folder(files.transform_keys { |path| "public/#{path}" }, "--public", "public", *arguments, app: app, **options, &before)
      end

      # As above, but with files in the server's own folder and without a public folder.
      def serve_folder(files, *arguments, app: APP, **options)
        launch(app, *arguments, files: files, **options) do |server|
          FileUtils.mkdir_p(server.path("public"))
          files.each_key { |path| age(server.path(path)) }
          yield server if block_given?
          server.start
        end
      end

      # Sets the modification time of a file.
      def age(path, time = LONG_AGO) = File.utime(time, time, path)

      # Waits until the files are old enough for the server to keep them in memory: a change soon after another one might not
      # show in a file's timestamps.
      def settle(*paths)
        changed = paths.map { |path| File.ctime(path) }.max
        wait_until("files of some age") { Time.now - changed > 2.5 }
      end

      # Asserts that the response is the whole content of this file.
      def assert_file(content, answer, message = nil)
        assert_equal [200, nil], [answer.status, answer["x-from"]], message
        assert_equal content.b, answer.body, message
      end

      # Asserts that the application has responded.
      def assert_from_app(answer, message = nil)
        assert_equal [404, "app"], [answer.status, answer["x-from"]], message
      end

      # Returns that many random bytes, the same ones for each seed.
      def noise(bytes, seed: 7) = Random.new(seed).bytes(bytes)
    end
  end
end
