# frozen_string_literal: true

module Puma
  # The configuration for plugins: `options` is similar to a Hash, with Puma's names and ours.
  class Config
    # The configuration, or the Draft of a file that is being read.
    def self.current
      file = Fairlead::Configuration::ConfigFile.current
      return Fairlead::Configuration::Draft.new(file) if file

      configuration = Fairlead::Launcher.current&.configuration
      configuration && new(configuration)
    end

    attr_reader :options
    alias _options options

    def initialize(configuration)
      @configuration = configuration
      @options = Options.new(configuration)
    end

    def environment = @configuration.environment

    def environment_str = environment

    # The values of the options.
    class Options
      # The options of the control server: its real address and token, not the configured ones ("auto").
      REACHED = { control_url: :url, control_auth_token: :token }.freeze

      def initialize(configuration)
        @configuration = configuration
      end

      # nil for an option that Fairlead does not have and no plugin has set.
      def [](name)
        name = name.to_sym
        return reached(REACHED[name]) if REACHED.key?(name)
        return hooks(name) if Fairlead::Configuration::HookList.event(name)

        option = Fairlead::Options[Fairlead::Configuration::PumaOptions.ours(name)]
        option.is_a?(Fairlead::Options::Option) ? @configuration[option.name] : @configuration.plugin_settings[name]
      end

      # Only blocks can be added at this point: for this process and its children.
      def []=(name, value)
        raise FrozenError, "the configuration is complete: #{name}" unless Fairlead::Configuration::HookList.event(name)

        hooks(name).concat(value)
      end

      def fetch(name, *default)
        value = self[name]
        return value unless value.nil?
        return yield(name) if block_given?

        default.empty? ? raise(KeyError, "key not found: #{name.inspect}") : default.first
      end

      def key?(name) = !self[name].nil?
      alias has_key? key?

      private

      def hooks(name)
        event = Fairlead::Configuration::HookList.event(name)
        blocks = -> { [@configuration.hooks, Fairlead::Hooks.of_process].flat_map { |hooks| hooks.blocks(event) } }
        Fairlead::Configuration::HookList.new(blocks) { |block| Fairlead::Hooks.on(event, block) }
      end

      def reached(part)
        Fairlead::Control::OwnStats.client&.public_send(part) if @configuration.control_url
      end
    end
  end
end
