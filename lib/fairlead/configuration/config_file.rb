# frozen_string_literal: true

require "did_you_mean"

module Fairlead
  class Configuration
    # The options and hooks that a configuration file sets. The file is Ruby; each option and each hook is a method:
    #
    #   workers :auto
    #   threads 1, 5
    #   before_worker_boot { |index| Database.connect }
    class ConfigFile < Layer
      attr_reader :path, :hooks

      # +default_host+: the host for a port without one; nil means every interface.
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

      # Whether the default host has been used.
      def uses_default_host? = @uses_default_host == true

      # Evaluates the file and returns itself. An exception becomes a problem, with its line.
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

      # Called for a method that is neither an option nor a hook.
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

      # The message of a syntax error contains the line.
      def raised(error)
        return problem(nil, nil, error.message.strip) if error.is_a?(SyntaxError)

        problem(nil, here(error.backtrace_locations || []), Error.sum_up(error))
      end
    end
  end
end

require "fairlead/configuration/script"
