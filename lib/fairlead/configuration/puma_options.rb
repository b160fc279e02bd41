# frozen_string_literal: true

module Fairlead
  class Configuration
    # `@options` and `@config.options` of a configuration file: the values that the file has set, under our names and Puma's.
    class PumaOptions
      # Puma's keys that are not aliases of our options.
      NAMES = { binds: :bind, state: :state_path, control_auth_token: :control_token, worker_directory: :directory }.freeze

      # Our name for one of Puma's.
      def self.ours(name) = NAMES.fetch(name.to_sym, name.to_sym)

      # +above+: a Layer that wins over the file, and is changed instead of it.
      def initialize(file, above: nil)
        @file = file
        @layers = [*above, file]
      end

      def [](name) = fetch(name, nil)

      # Plugins may have their own settings.
      def []=(name, value)
        ours = self.class.ours(name)
        if HookList.event(name)
          hooks(name).concat(value)
        elsif Options[ours].nil? && @file.plugins?
          @file.plugin_settings[ours] = value
        else
          @layers.first.replace(ours, value, origin: @file.here_as("options[:#{name}]"))
        end
      end

      def fetch(name, default = nil)
        return @file.app || default if name.to_sym == :app
        return hooks(name) if HookList.event(name)

        ours = self.class.ours(name)
        option = Options[ours]&.name
        value = @file.plugin_settings.fetch(ours) { @layers.map { |layer| layer[option] }.find { |one| !one.nil? } }
        value.nil? ? default : value
      end

      def key?(name) = !fetch(name).nil?

      private

      def hooks(name)
        event = HookList.event(name)
        HookList.new(-> { @file.hooks.blocks(event) }) { |block| @file.hook(event, nil, block) }
      end
    end

    # `@config` of a configuration file, and `Puma.cli_config` while it is read: the options of the command line and of the file
    # so far.
    class Draft
      attr_reader :options
      alias _options options

      # +file+: a ConfigFile.
      def initialize(file)
        @options = PumaOptions.new(file, above: file.flags)
      end
    end
  end
end
