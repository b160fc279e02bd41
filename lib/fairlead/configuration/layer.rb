# frozen_string_literal: true

module Fairlead
  class Configuration
    # The values that one source sets, and its problems. Nothing is raised here, so that the problems of all sources can be
    # reported together.
    class Layer
      # A restart command for Puma, as deploy tools write it into files for Puma.
      STARTS_PUMA = %r{(?:\A|[\s/])puma(?:\s|\z)}

      # settings: option name => Setting. problems: ConfigurationError::Problem
      attr_reader :settings, :problems

      # From option name => value, or list of values: { threads: [1, 5], bind: ["tcp://…", "unix://…"] }.
      def self.from(options, origin:)
        options.each_with_object(new) do |(name, value), layer|
          list = value.is_a?(Array) ? value : [value]
          values = Options[name].respond_to?(:repeatable?) && Options[name].repeatable? ? list.map { |one| [one] } : [list]
          values.each { |arguments| layer.set(name, *arguments, origin: origin) }
        end
      end

      def initialize
        @settings = {}
        @problems = []
        @warnings = {}
      end

      # Sets the option or shorthand of that name. A repeatable option collects its values.
      def set(name, *arguments, origin:)
        return keep_own_command(origin) if name == :restart_command && STARTS_PUMA.match?(arguments.first.to_s)

        Options.fetch(name).expand(*arguments).each { |option, value| store(Options.fetch(option), value, origin) }
      rescue KeyError => e
        problem(name, origin, e.message)
      rescue Options::Types::Invalid => e
        problem(name, origin, e.message)
      rescue ArgumentError
        problem(name, origin, "invalid arguments; use for example #{example(name)}")
      end

      def problem(option, origin, message)
        problems << ConfigurationError::Problem.new(option, origin, message)
      end

      # Replaces the value, even if the option may be given several times.
      def replace(name, value, origin:)
        forget(Options[name]&.name)
        other = Layer.from({ name => value }, origin: origin)
        settings.update(other.settings)
        problems.concat(other.problems)
      end

      def forget(name) = settings.delete(name)

      # Warns once for each +key+.
      def warning(key, text)
        @warnings[key] ||= text
      end

      def warnings = @warnings.values

      # The value of that option, or nil.
      def [](name) = settings[name]&.value

      private

      def keep_own_command(origin)
        warning(:restart_command, "#{origin}: restart_command has no effect: it would start Puma; a restart repeats the command that has " \
                                  "started Fairlead")
      end

      def store(option, value, origin)
        value = settings[option.name].value + value if option.repeatable? && settings.key?(option.name)
        settings[option.name] = Setting.new(value, origin)
      end

      def example(name)
        Options.fetch(name).valid.map(&:inspect).join(", ")
      end
    end
  end
end
