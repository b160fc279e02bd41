# frozen_string_literal: true

require "fileutils"
require "support/http_client"
require "support/rack_apps"

module Fairlead
  module Test
    # What a test case in test/integration/files includes: servers with a public folder, and what their answers are held
    # against. The application behind the folder answers everything 404, so that an answer says who gave it.
    module FileServing
      include HttpServing

      APP = <<~'RUBY'
        run lambda { |env|
          [404, { "content-type" => "text/plain", "x-from" => "app" }, ["#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"]]
        }
      RUBY

      # The files of a test are that old, unless it says otherwise: a file that has just been changed may be treated with care.
      LONG_AGO = Time.utc(2024, 2, 29, 12, 0, 0)
      LONG_AGO_HTTP = "Thu, 29 Feb 2024 12:00:00 GMT"

      # The fields of an upgrade to a WebSocket.
      UPGRADE = {
        "connection" => "upgrade", "upgrade" => "websocket", "sec-websocket-version" => "13",
        "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ=="
      }.freeze

      # A server whose public folder has these files (path => content). The block gets the server before it starts.
      def serve_public(files, *arguments, app: APP, **options, &before)
        serve_folder(files.transform_keys { |path| "public/#{path}" }, "--public", "public", *arguments, app: app, **options, &before)
      end

      # The same for files of the server's own folder, and without a public one.
      def serve_folder(files, *arguments, app: APP, **options)
        launch(app, *arguments, files: files, **options) do |server|
          FileUtils.mkdir_p(server.path("public"))
          files.each_key { |path| age(server.path(path)) }
          yield server if block_given?
          server.start
        end
      end

      # Gives a file the time at which it was changed last.
      def age(path, time = LONG_AGO) = File.utime(time, time, path)

      # Waits until the files have been left alone for so long that the server may keep them in memory: a change soon after
      # another one might not show in the times of a file.
      def settle(*paths)
        changed = paths.map { |path| File.ctime(path) }.max
        wait_until("files of some age") { Time.now - changed > 2.5 }
      end

      # The answer is this file's content (and the whole of it).
      def assert_file(content, answer, message = nil)
        assert_equal [200, nil], [answer.status, answer["x-from"]], message
        assert_equal content.b, answer.body, message
      end

      # The application was asked.
      def assert_from_app(answer, message = nil)
        assert_equal [404, "app"], [answer.status, answer["x-from"]], message
      end

      # That many bytes, no two parts of them alike.
      def noise(bytes, seed: 7) = Random.new(seed).bytes(bytes)
    end
  end
end
