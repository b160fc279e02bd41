# frozen_string_literal: true

require "rack"
require "rack/files"

module Fairlead
  module Compat
    # Serves the files of a folder in Ruby if the engine cannot: after the application, or with additional media types. Only GET
    # and HEAD; `index.html` for a folder; no hidden files. Rack::Files reads and checks the path.
    class PublicFolder
      HIDDEN = %r{/\.(?!well-known/)}

      def initialize(app, folder)
        @app = app
        @files = Rack::Files.new(File.expand_path(folder))
      end

      def call(env)
        file(env) || @app.call(env)
      end

      # The response with the file, or nil if there is none.
      def file(env)
        path = env["PATH_INFO"]
        return unless %w[GET HEAD].include?(env["REQUEST_METHOD"]) && !env["rack.upgrade?"] && !hidden?(path)

        path += "index.html" if path.end_with?("/")
        status, _, body = response = @files.call(env.merge("PATH_INFO" => path))
        return response if [200, 206, 304, 416].include?(status)

        body.close if body.respond_to?(:close)
        nil
      end

      private

      def hidden?(path)
        HIDDEN.match?(Rack::Utils.unescape_path(path).b)
      end
    end
  end
end
