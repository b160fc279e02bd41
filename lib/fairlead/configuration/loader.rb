# frozen_string_literal: true

module Fairlead
  class Configuration
    # Gathers the sources of a command line: finds the configuration file, reads it, and puts the layers in order.
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

      # nil when there is no file to read. A folder that the file names is seen from where the server is to run.
      def read_file
        path = @flags[:config] || default_path
        return if path.nil? || path == "-"
        return read(path) unless @flags[:directory]

        path = File.expand_path(path)
        Dir.chdir(@flags[:directory]) { read(path) }
      end

      def read(path) = ConfigFile.new(path, default_host: @default_host).read

      # The default host, if it is where the server is going to listen.
      def effective_default_host(layers, file)
        @default_host if file&.uses_default_host? && layers.find { |layer| layer[:bind] }.equal?(file)
      end

      # A given path is relative to the current folder, the default ones to the folder the server is to run in.
      def default_path
        folder = @flags[:directory] || "."
        ["config/fairlead/#{environment}.rb", "config/fairlead.rb"]
          .map { |path| folder == "." ? path : File.join(folder, path) }
          .find { |path| File.exist?(path) }
      end

      # The file cannot choose the environment by which it is found.
      def environment
        [@flags, @environment, @fallback].filter_map { |layer| layer[:environment] }.first || Options.fetch(:environment).default({})
      end
    end
  end
end
