# frozen_string_literal: true

module Fairlead
  class Configuration
    # The blocks for one event in the shape of the Array that Puma keeps among its options: gems add theirs with
    # `options[:before_worker_boot] << block`.
    class HookList
      include Enumerable

      class << self
        # Our name for an event if +name+ is one among Puma's options; nil for an option.
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

      # +entry+: a block; or, as Puma has it, [block, key] or { block:, … }.
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
