# frozen_string_literal: true

module Fairlead
  class Configuration
    # What `@options` is in a configuration file: the values that the file has set, under our names and Puma's.
    class PumaOptions
      # Puma's keys that are no aliases of our options.
      NAMES = { binds: :bind, worker_directory: :directory, silence_single_worker_warning: nil }.freeze

      def initialize(file)
        @file = file
      end

      def [](name) = fetch(name, nil)

      # Plugins may have settings of their own.
      def []=(name, value)
        return @file.plugin_settings[name.to_sym] = value if Options[ours(name)].nil? && @file.plugins?

        @file.replace(ours(name), value, origin: @file.here_as("@options[:#{name}]"))
      end

      def fetch(name, default = nil)
        return @file.app || default if name.to_sym == :app

        value = @file.plugin_settings.fetch(name.to_sym) { @file[Options[ours(name)]&.name] }
        value.nil? ? default : value
      end

      def key?(name) = !fetch(name).nil?

      private

      def ours(name) = NAMES.fetch(name.to_sym, name.to_sym)
    end
  end
end
