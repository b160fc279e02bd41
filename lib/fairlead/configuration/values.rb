# frozen_string_literal: true

module Fairlead
  class Configuration
    # The value of each option: from a source, or else the default. Defaults are computed when they are first read, because some
    # depend on the system: on folders, users, interfaces. Relative paths begin at the option `directory`, which is known once
    # all sources have been read.
    class Values
      # Problems of relative paths: ConfigurationError::Problem.
      attr_reader :problems

      # +given+: option name => Setting.
      def initialize(given)
        @given = given
        @values = {}
        @problems = []
        @given.each { |name, setting| take(Options.fetch(name), setting) }
      end

      def [](name) = @values.fetch(name) { @values[name] = Options.fetch(name).default(self) }

      # The source of the value.
      def origin(name) = @given[Options.fetch(name).name]&.origin || DEFAULT

      private

      def take(option, setting)
        @values[option.name] = option.resolve(setting.value) { folder }
      rescue Options::Types::Invalid => e
        @problems << ConfigurationError::Problem.new(option.name, setting.origin, e.message)
      end

      def folder = @given[:directory] ? @given[:directory].value : self[:directory]
    end
  end
end
