# frozen_string_literal: true

module Fairlead
  class Configuration
    # Makes the configuration of a command line: finds and reads the configuration file, and puts the layers in order.
    class Loader
      def initialize(flags, environment, fallback, default_host)
        @flags = flags
        @fallback = fallback
        @default_host = default_host
        @environment = Environment.read(environment)
      end

      def load
        file = read_file
        layers = [@flags, file, @environment, @fallback].compact
        Configuration.new(layers, hooks: file ? file.hooks : Hooks.new, default_host: effective_default_host(layers, file))
      end

      private

      # Returns nil if there is no file. Relative folders in the file are relative to the folder that the server runs in.
      def read_file
        path = @flags[:config] || default_path
        return if path.nil? || path == "-"
        return read(path) unless @flags[:directory]

        path = File.expand_path(path)
        Dir.chdir(@flags[:directory]) { read(path) }
      end

      def read(path) = ConfigFile.new(path, default_host: @default_host).read

      # The default host, if the server is going to listen on it.
      def effective_default_host(layers, file)
        @default_host if file&.uses_default_host? && layers.find { |layer| layer[:bind] }.equal?(file)
      end

      # A given path is relative to the current folder, the default ones to the folder that the server runs in.
      def default_path
        folder = @flags[:directory] || "."
        ["config/fairlead/#{environment}.rb", "config/fairlead.rb"]
          .map { |path| folder == "." ? path : File.join(folder, path) }
          .find { |path| File.exist?(path) }
      end

      # The environment decides which file is read, so the file cannot set it.
      def environment
        [@flags, @environment, @fallback].filter_map { |layer| layer[:environment] }.first || Options.fetch(:environment).default({})
      end
    end
  end
end
