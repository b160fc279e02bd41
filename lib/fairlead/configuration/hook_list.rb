# frozen_string_literal: true

module Fairlead
  class Configuration
    # The blocks for one event, with the interface of the Array among Puma's options: gems add their blocks with
    # `options[:before_worker_boot] << block`.
    class HookList
      include Enumerable

      class << self
        # Our name for an event if +name+ is an event among Puma's options; nil for an option.
        def event(name)
          name = Hooks::ALIASES.fetch(name.to_sym, name.to_sym)
          name if Hooks::NAMES.key?(name) && Options[name].nil?
        end
      end

      # +blocks+: returns the present blocks. The block of this method adds another.
      def initialize(blocks, &add)
        @blocks = blocks
        @add = add
      end

      def each(&) = to_a.each(&)
      def to_a = @blocks.call
      def size = to_a.size
      def empty? = to_a.empty?

      # +entry+: a block; or, in Puma's form, [block, key] or { block:, … }.
      def <<(entry)
        entry = entry[:block] if entry.is_a?(Hash)
        entry = entry.first if entry.is_a?(Array)
        raise ArgumentError, "a hook needs #call" unless entry.respond_to?(:call)

        @add.call(entry) unless to_a.include?(entry)
        self
      end

      def push(*entries) = entries.each { |entry| self << entry } && self
      alias append push

      def concat(*lists) = push(*lists.flat_map(&:to_a))
    end
  end
end
