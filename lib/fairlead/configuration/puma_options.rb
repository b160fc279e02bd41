# frozen_string_literal: true

module Fairlead
  class Configuration
    # What `@options` is in a configuration file: the values that the file has set, under our names and Puma's.
    class PumaOptions
      # Puma's keys that are no aliases of our options.
      NAMES = { binds: :bind, state: :state_path, control_auth_token: :control_token, worker_directory: :directory }.freeze

      # Our name for one of Puma's.
      def self.ours(name) = NAMES.fetch(name.to_sym, name.to_sym)

      # +above+: a Layer whose values come before those of the file, and which is changed in place of it.
      def initialize(file, above: nil)
        @file = file
        @layers = [*above, file]
      end

      def [](name) = fetch(name, nil)

      # Plugins may have settings of their own.
      def []=(name, value)
        ours = self.class.ours(name)
        if Options[ours].nil? && @file.plugins?
          @file.plugin_settings[ours] = value
        else
          @layers.first.replace(ours, value, origin: @file.here_as("options[:#{name}]"))
        end
      end

      def fetch(name, default = nil)
        return @file.app || default if name.to_sym == :app

        ours = self.class.ours(name)
        option = Options[ours]&.name
        value = @file.plugin_settings.fetch(ours) { @layers.map { |layer| layer[option] }.find { |one| !one.nil? } }
        value.nil? ? default : value
      end

      def key?(name) = !fetch(name).nil?
    end
  end
end
