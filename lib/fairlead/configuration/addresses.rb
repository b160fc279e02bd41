# frozen_string_literal: true

module Fairlead
  class Configuration
    # The addresses of a configuration: the served ones, the control server and the health endpoints. Finds addresses that
    # cannot be listened on, without listening.
    class Addresses
      OPTIONS = %i[bind control_url health_url].freeze

      Entry = Struct.new(:option, :binding)
      private_constant :Entry

      # The block returns true if a Binding has a listener already, from an earlier program or from systemd.
      def initialize(configuration, &open)
        @configuration = configuration
        @open = open || ->(_) { false }
      end

      # A Problem for each address that cannot be listened on.
      def problems
        entries.each_with_index.filter_map do |entry, index|
          refuse_second(entry.binding, entries.take(index))
          entry.binding.check unless @open.call(entry.binding)
          nil
        rescue BindError => e
          ConfigurationError::Problem.new(entry.option, @configuration.origin(entry.option), e.message)
        end
      end

      # The paths of Unix sockets that have no listener yet: [[option, path], …].
      def sockets
        unix = entries.select { |entry| entry.binding.is_a?(Binding::Unix) && entry.binding.path && !@open.call(entry.binding) }
        unix.map { |entry| [entry.option, entry.binding.path] }
      end

      private

      def entries
        @entries ||= OPTIONS.flat_map do |option|
          (Array(@configuration[option]) - ["auto"]).map { |address| Entry.new(option, Binding.parse(address)) }
        end
      end

      def refuse_second(binding, earlier)
        first = earlier.find { |entry| entry.binding.overlaps?(binding) }
        raise Listeners.taken(binding, first.binding.address) if first
      end
    end
  end
end
