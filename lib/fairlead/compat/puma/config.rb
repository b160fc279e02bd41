# frozen_string_literal: true

module Puma
  # The configuration as plugins see it: `options` is a Hash, more or less, under Puma's names and ours.
  class Config
    # While the configuration file is read: what the command line and the file have set so far.
    Draft = Struct.new(:_options)

    # The configuration, or the Draft of a file.
    def self.current
      file = Fairlead::Configuration::ConfigFile.current
      return Draft.new(Fairlead::Configuration::PumaOptions.new(file, above: file.flags)) if file

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
      def initialize(configuration)
        @configuration = configuration
      end

      # nil for an option that Fairlead does not have and no plugin has set.
      def [](name)
        name = name.to_sym
        option = Fairlead::Options[Fairlead::Configuration::PumaOptions.ours(name)]
        option.is_a?(Fairlead::Options::Option) ? @configuration[option.name] : @configuration.plugin_settings[name]
      end

      def fetch(name, *default)
        value = self[name]
        return value unless value.nil?
        return yield(name) if block_given?

        default.empty? ? raise(KeyError, "key not found: #{name.inspect}") : default.first
      end

      def key?(name) = !self[name].nil?
      alias has_key? key?
    end
  end
end
