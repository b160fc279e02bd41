# frozen_string_literal: true

require_relative "types"

module Fairlead
  module Options
    # An entry of the table. Flags, configuration file, environment, help and documentation read it.
    #
    # name        the method of the configuration file and, with dashes, the long flag
    # group       the heading above it in the help and the documentation
    # short       the short flag, or nil
    # long_flags  every long flag without its dashes, the preferred one first; none if only the file can set it
    # foreign_flags  the spelling of other servers: a word after a single dash
    # aliases     further names in the configuration file
    # variables   environment variables; the first one that is not blank wins
    # doc         one sentence, or several; the help shows the first
    # valid, invalid   examples of arguments that are accepted and refused
    # example     how the configuration file gives the valid one
    class Entry
      attr_reader :name, :group, :short, :long_flags, :foreign_flags, :aliases, :variables, :doc, :valid, :invalid, :example

      def initialize(name, group:, doc:, valid:, invalid:, short: nil, long_flags: nil, foreign_flags: [], aliases: [], variables: [],
                     in_file: true, example: nil)
        @name = name
        @group = group
        @doc = doc
        @valid = valid
        @invalid = invalid
        @short = short
        @long_flags = long_flags || [name.to_s.tr("_", "-")]
        @foreign_flags = foreign_flags
        @aliases = aliases
        @variables = variables
        @in_file = in_file
        @example = example || "#{name} #{valid.map(&:inspect).join(", ")}"
      end

      # True if the configuration file may set it.
      def in_file? = @in_file

      # True if the command line may set it: a block cannot be written there.
      def flag? = long_flags.any?

      # The names of its methods in the configuration file.
      def methods_in_file = in_file? ? [name, *aliases] : []

      # The first sentence of the description.
      def summary = doc[/\A.*?\.(?=\s|\z)/m]
    end

    # One option with one value (or, if it is repeatable, a list of values).
    #
    # scope     :engine if the native engine gets it, :process if it stays in Ruby
    # embedded  true if it has a meaning for a server inside another program; options of the engine have one
    # default   the value, or a callable that derives it from the values of the options (name => value)
    # shown_default  a derived default, in words
    # none      the meaning of no value, in words
    # needs     the option without which this one has no effect
    # bare      true if the method of the configuration file may have no argument, and then changes nothing
    class Option < Entry
      attr_reader :type, :scope, :shown_default, :needs

      def initialize(name, type, default:, scope:, embedded: scope == :engine, shown_default: nil, repeatable: false, none: "none",
                     needs: nil, bare: false, **entry)
        super(name, **entry)
        @type = type
        @default = default
        @scope = scope
        @embedded = embedded
        @repeatable = repeatable
        @none = none
        @needs = needs
        @bare = bare
        @shown_default = shown_default || format(default)
      end

      def repeatable? = @repeatable
      def boolean? = type.boolean?
      def engine? = scope == :engine
      def embedded? = @embedded
      def unit = type.unit

      def default(values)
        @default.respond_to?(:call) ? @default.call(values) : @default
      end

      # The placeholder for a flag's value in --help; nil for a switch.
      def placeholder = type.placeholder

      # Turns the arguments of a source into { name => canonical value }. If the argument is nil, the result is empty, so that
      # `pid_file ENV["PIDFILE"]` changes nothing if the variable is not set.
      def expand(*arguments)
        return { name => type.implied } if arguments.empty? && !type.implied.nil?
        return {} if arguments.empty? && @bare

        arguments = [arguments] if type.list? && arguments.size > 1
        one_argument!(arguments)
        return {} if arguments.first.nil?

        { name => repeatable? ? [type.parse(arguments.first)] : type.parse(arguments.first) }
      end

      # The value of a source; relative paths begin at the folder that the block returns. Raises Types::Invalid.
      def resolve(value, &)
        repeatable? ? value.map { |one| type.resolve(one, &) } : type.resolve(value, &)
      end

      # The value as a person would write it.
      def format(value)
        return @none if value.nil? || value == []

        (value.is_a?(Array) ? value : [value]).map { |element| type.format(element) }.join(", ")
      end

      private

      def one_argument!(arguments)
        raise Types::Invalid, "takes one value, not #{arguments.size}" unless arguments.size == 1
      end
    end

    # A convenience that sets other options: `threads 1, 5`, `port 3000`. The block turns its arguments into
    # { name of an option => argument }.
    class Shorthand < Entry
      attr_reader :placeholder

      # +required+: the number of arguments that the block needs.
      def initialize(name, placeholder: nil, required: 1, **entry, &expansion)
        super(name, **entry)
        @placeholder = placeholder
        @required = required
        @expansion = expansion
      end

      def boolean? = false
      def shown_default = nil

      def expand(*arguments)
        least = @required
        most = @expansion.parameters.size
        raise Types::Invalid, "takes #{least} to #{most} values, not #{arguments.size}" unless arguments.size.between?(least, most)

        @expansion.call(*arguments).reduce({}) { |values, (option, value)| values.merge(Options.fetch(option).expand(value)) }
      end
    end
  end
end
