# frozen_string_literal: true

module Fairlead
  # Loads the application from a rackup file, with Rack 2 or 3. If that fails, says where.
  module AppLoader
    # The application where there are only the files of a folder. The folder's own page for 404, if there is
    # one, takes the place of the empty body.
    NOTHING = ->(_env) { [404, {}, []] }

    @middleware = []

    class << self
      # What there is to serve beside the files; raises AppLoadError.
      def of(configuration)
        files_only?(configuration) ? NOTHING : load(configuration.rackup)
      end

      # Raises AppLoadError when there is nothing to serve.
      def check(configuration)
        present!(configuration.rackup) unless files_only?(configuration)
      end

      # Whether the files of a folder are all there is to serve: nobody has named a rackup file, and there is none.
      def files_only?(configuration)
        !configuration.public_dir.nil? && !configuration.given?(:rackup) && !File.exist?(configuration.rackup)
      end

      # The application of that file; raises AppLoadError.
      def load(path)
        present!(path)
        build(File.expand_path(path))
      rescue Error
        raise
      rescue StandardError, ScriptError, SystemExit => e
        raise signal_behind(e) || failure(path, e)
      end

      # Puts a middleware in front of every application this process is going to serve, the first one outermost. For parts
      # of Fairlead that an application loads with `require`; others have no middleware.
      def use(middleware)
        @middleware |= [middleware]
      end

      # Whether a header value may be a list with a line feed between its values, as the SPEC of Rack 2 has it. Without Rack
      # it may not.
      def field_lists?
        return false unless defined?(Rack)

        require "rack/version"
        Rack.release.start_with?("2.")
      end

      # That application behind the middleware. Rack::Lint of Rack 2 counts on others to have loaded URI.
      def wrap(app)
        require "uri" if defined?(Rack) && !Rack.autoload?(:Lint)
        @middleware.reverse.reduce(app) { |inner, middleware| middleware.new(inner) }
      end

      private

      def present!(path)
        raise AppLoadError.new(path, nil, "no such file in #{Dir.pwd}") unless File.file?(path)
      end

      # Files alone, or an application that is there already, do without Rack. Rack 2 reads options of its own server from
      # a comment of the file, for which it loads that server, unless it is given nil; and it returns a pair.
      def build(path)
        require "rack"
        return Rack::Builder.parse_file(path) unless Rack.release.start_with?("2.")

        Rack::Builder.parse_file(path, nil).first
      end

      # RubyGems makes an error of its own of a signal that interrupts a +require+.
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

      # [path, line] of the frames in files below the current folder, innermost first: not those of the gems.
      def own_frames(error)
        (error.backtrace_locations || []).filter_map do |frame|
          path = relative(File.expand_path(frame.path))
          [path, frame.lineno] if File.exist?(path) && !path.start_with?("/", "vendor/")
        end
      end

      def relative(path)
        path.delete_prefix("#{Dir.pwd}/")
      end

      def reason(error)
        return "it called exit while loading" if error.is_a?(SystemExit)

        Error.sum_up(error)
      end
    end
  end
end
