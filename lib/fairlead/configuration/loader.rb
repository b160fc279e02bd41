# frozen_string_literal: true

module Fairlead
  class Configuration
    # Makes the configuration of a command line: finds and reads the configuration files, and puts the layers in order.
    class Loader
      def initialize(flags, environment, fallback, default_host)
        @flags = flags
        @fallback = fallback
        @default_host = default_host
        @environment = Environment.read(environment)
      end

      def load
        file = read_files
        layers = [@flags, file, @environment, @fallback].compact
        Configuration.new(layers, hooks: file ? file.hooks : Hooks.new, default_host: effective_default_host(layers, file), app: file&.app,
                                  plugin_settings: file ? file.plugin_settings : {})
      end

      private

      # Returns nil if there is no file. Relative folders in a file begin at the folder that the server runs in.
      def read_files
        paths = (@flags[:config] || [default_path]).compact - ["-"]
        return if paths.empty?
        return read(paths) unless @flags[:directory]

        paths = paths.map { |path| SystemText.absolute(path) }
        Dir.chdir(@flags[:directory]) { read(paths) }
      end

      def read(paths)
        ConfigFile.new(*paths, callers_host: @default_host, flags: @flags).read.tap do |file|
          workers = [@flags, file, @environment, @fallback].filter_map { |layer| layer[:workers] }.first || 0
          file.run_mode_blocks(workers.positive? ? :cluster : :single)
        end
      end

      # The default host, if the server is going to listen on it.
      def effective_default_host(layers, file)
        @default_host if file&.uses_callers_host? && layers.find { |layer| layer[:bind] }.equal?(file)
      end

      # A given path is relative to the current folder, the default ones to the folder that the server runs in.
      def default_path
        folder = @flags[:directory]
        %w[fairlead puma].flat_map { |name| ["config/#{name}/#{environment}.rb", "config/#{name}.rb"] }
                         .map { |path| folder ? SystemText.absolute(path, folder) : path }
                         .find { |path| File.exist?(path) }
      end

      # The environment decides which file is read, so the file cannot set it.
      def environment
        [@flags, @environment, @fallback].filter_map { |layer| layer[:environment] }.first || Options.fetch(:environment).default({})
      end
    end
  end
end
