# frozen_string_literal: true

module Fairlead
  module Test
    # Skips tests that need a gem that this Ruby does not have. Debian compiles native gems for its default Ruby only, so another
    # Ruby of the same Debian lacks them, and with them each gem that depends on one.
    module NeededGems
      # Why the tests cannot have these gems; nil if they can.
      def self.missing(*names)
        name = names.filter_map { |wanted| absent(wanted, []) }.first
        "there is no gem #{name} for Ruby #{RUBY_VERSION}" if name
      end

      def needs_gems(*names)
        missing = NeededGems.missing(*names)
        skip(missing) if missing
      end

      # Returns the first missing gem: this gem, or one that it depends on. Debian may have another version than a gem asks for.
      def self.absent(name, seen)
        return if seen.include?(name)

        seen << name
        spec = Gem::Specification.find_all_by_name(name).first
        spec ? spec.runtime_dependencies.filter_map { |dependency| absent(dependency.name, seen) }.first : name
      end
      private_class_method :absent
    end
  end
end
