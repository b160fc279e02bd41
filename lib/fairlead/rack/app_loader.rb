# frozen_string_literal: true

module Fairlead
  # Loads the application from a rackup file, with Rack 2 or 3. If that fails, reports the place of the error.
  module AppLoader
    # The application of a server that only serves the files of a folder. If the folder has a page for 404, the engine sends
    # that instead of the empty body.
    NOTHING = ->(_env) { [404, {}, []] }

    @middleware = []

    class << self
      # The application for a configuration. Raises AppLoadError.
      def of(configuration)
        files_only?(configuration) ? NOTHING : load(configuration.rackup)
      end

      # Raises AppLoadError if there is nothing to serve.
      def check(configuration)
        present!(configuration.rackup) unless files_only?(configuration)
      end

      # True if only the files of a folder are served: there is no rackup file, and none was named.
      def files_only?(configuration)
        !configuration.public_dir.nil? && !configuration.given?(:rackup) && !File.exist?(configuration.rackup)
      end

      # Loads the application from that file. Raises AppLoadError.
      def load(path)
        present!(path)
        build(SystemText.absolute(path))
      rescue Error
        raise
      rescue StandardError, ScriptError, SystemExit => e
        raise signal_behind(e) || failure(path, e)
      end

      # Puts a middleware in front of every application that this process is going to serve; the first one is outermost. Only
      # for parts of Fairlead that an application has to require.
      def use(middleware)
        @middleware |= [middleware]
      end

      # True if a line feed separates the values of a header, as in the SPEC of Rack 2.
      def field_lists?
        return false unless defined?(Rack)

        require "rack/version"
        Rack.release.start_with?("2.")
      end

      # Puts the middleware in front of +app+. Rack::Lint of Rack 2 needs URI but does not load it.
      def wrap(app)
        require "uri" if defined?(Rack) && !Rack.autoload?(:Lint)
        @middleware.reverse.reduce(app) { |inner, middleware| middleware.new(inner) }
      end

      private

      def present!(path)
        raise AppLoadError.new(path, nil, "is a folder, not a rackup file") if File.directory?(path)
        raise AppLoadError.new(path, nil, "no such file in #{SystemText.current}") unless File.file?(path)
      end

      # Loads Rack only here: other applications do not need it. Rack 2 returns a pair; without the nil it would look for
      # options in a comment of the file, and load its own server for that.
      def build(path)
        require "rack"
        return Rack::Builder.parse_file(path) unless Rack.release.start_with?("2.")

        Rack::Builder.parse_file(path, nil).first
      end

      # RubyGems turns a signal that interrupts a +require+ into its own error.
      def signal_behind(error)
        error = error.cause until error.nil? || error.is_a?(SignalException)
        error
      end

      def failure(rackup, error)
        return syntax_error(rackup, error) if error.is_a?(SyntaxError)

        frames = own_frames(error)
        rackup_frame = frames.find { |frame| frame.first == rackup }
        path, line = frames.first || [rackup, nil]
        from = " (loaded from #{rackup_frame.join(":")})" if rackup_frame && path != rackup
        AppLoadError.new(path, line, "#{reason(error)}#{from}")
      end

      # The message of a syntax error starts with its place.
      def syntax_error(rackup, error)
        match = /\A(?<path>.+?):(?<line>\d+): (?<reason>.*)\z/m.match(error.message)
        return AppLoadError.new(rackup, nil, error.message) unless match

        AppLoadError.new(relative(match[:path]), Integer(match[:line], 10), match[:reason].strip)
      end

      # [path, line] of the frames in files below the current folder, without gems; the innermost first.
      def own_frames(error)
        (error.backtrace_locations || []).filter_map do |frame|
          path = relative(SystemText.absolute(frame.path))
          [path, frame.lineno] if File.exist?(path) && !path.start_with?("/", "vendor/")
        end
      end

      def relative(path)
        SystemText.decode(path.b.delete_prefix("#{Dir.pwd}/".b))
      end

      def reason(error)
        return "it called exit while loading" if error.is_a?(SystemExit)

        Error.sum_up(error)
      end
    end
  end
end
