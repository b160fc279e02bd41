# frozen_string_literal: true

require "did_you_mean"

module Fairlead
  class Configuration
    # What a configuration file says. The file is plain Ruby; each option of the table is a method, and so is each hook:
    #
    #   workers :auto
    #   threads 1, 5
    #   before_worker_boot { |index| Database.connect }
    class ConfigFile < Layer
      attr_reader :path, :hooks

      # +default_host+: where a port is that the file names no host for; nil: on every interface.
      def initialize(path, default_host: nil)
        super()
        @path = path
        @default_host = default_host
        @hooks = Hooks.new
      end

      def set(name, *arguments, origin:)
        return super unless name == :port && arguments.one? && arguments.first && @default_host

        @uses_default_host = true
        super(name, *arguments, @default_host, origin: origin)
      end

      # Whether it has a port without a host, and there was a default for that.
      def uses_default_host? = @uses_default_host == true

      # Evaluates the file and returns itself. Whatever the file raises becomes a problem with its line.
      def read
        text = readable_text
        Script.evaluate(self, text) if text
        self
      rescue StandardError, ScriptError => e
        raised(e)
        self
      end

      # "config/fairlead.rb:12" for the line of the file that is being evaluated.
      def here(locations = caller_locations)
        line = locations.find { |location| location.path == path }&.lineno
        [path, line].compact.join(":")
      end

      # For a method that is neither an option nor a hook.
      def unknown(name)
        names = Options.flat_map(&:methods_in_file) + Hooks::NAMES.keys
        guess = DidYouMean::SpellChecker.new(dictionary: names.map(&:to_s)).correct(name.to_s).first
        problem(name, here, "unknown option#{"; did you mean #{guess}?" if guess}")
      end

      private

      def readable_text
        File.read(path, encoding: "UTF-8")
      rescue SystemCallError => e
        problem(nil, path, "cannot be read (#{e.class.name.delete_prefix("Errno::")})")
        nil
      end

      # A syntax error names its place itself.
      def raised(error)
        return problem(nil, nil, error.message.strip) if error.is_a?(SyntaxError)

        problem(nil, here(error.backtrace_locations || []), Error.sum_up(error))
      end
    end
  end
end

require "fairlead/configuration/script"
