# frozen_string_literal: true

require "rack"
require "rack/files"

module Fairlead
  module Compat
    # The files of a folder where the engine, which serves public_dir before it asks the application, cannot do it: behind the
    # application, or with types of its own. GET and HEAD only, `index.html` for a folder, and whatever is hidden stays so.
    # Rack::Files reads and checks the path.
    class PublicFolder
      HIDDEN = %r{/\.(?!well-known/)}

      def initialize(app, folder)
        @app = app
        @files = Rack::Files.new(File.expand_path(folder))
      end

      def call(env)
        file(env) || @app.call(env)
      end

      # The answer with the file, or nil when there is none for this request.
      def file(env)
        path = env["PATH_INFO"]
        return unless %w[GET HEAD].include?(env["REQUEST_METHOD"]) && !env["rack.upgrade?"] && !hidden?(path)

        path += "index.html" if path.end_with?("/")
        answer = @files.call(env.merge("PATH_INFO" => path))
        return answer if [200, 206, 304, 416].include?(answer.first)

        answer.last.close if answer.last.respond_to?(:close)
        nil
      end

      private

      def hidden?(path)
        HIDDEN.match?(Rack::Utils.unescape_path(path).b)
      end
    end
  end
end
