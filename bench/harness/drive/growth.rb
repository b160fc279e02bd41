# frozen_string_literal: true

module Bench
  module Drive
    # Operations of a server beside more and more other things, of which a setup makes n (Growth).
    class Growth
      COUNTS = [10, 100, 1000, 10_000].freeze

      # setup: see Growth. things: the n things, for headings. counts: the numbers of them.
      def initialize(setup, things:, counts: COUNTS)
        @setup = setup
        @things = things
        @counts = counts
      end

      def units
        { many: "operations", one: "operation" }
      end

      # For scenarios without an application.
      def speaks?(dialect, _shape) = !dialect.nil?

      def missing
        "there is no /proc/PID/smaps_rollup" unless ProcessGroup.readable?
      end

      def clients(_shape) = "n = #{@things}"

      def warm_up(target, _seconds)
        @setup.warm_up(target) if @setup.respond_to?(:warm_up)
      end

      # A server that cannot have a number of things has no values for it and for larger ones; the error says which number.
      def measure(target, _seconds)
        growth = {}
        errors = {}
        @counts.each do |count|
          @setup.figures(target, count).each { |name, value| (growth[name] ||= {})[count] = value }
        rescue Error, SystemCallError => e
          errors["n = #{count}: #{e.message.lines.first.chomp}"] = 1
          break
        end
        Measurement.new(errors: errors, growth: growth)
      end

      def problem(found)
        found.errors.keys.first if found.growth.empty?
      end

      def summary(found)
        name, values = found.growth.first
        [format("%s: %s", name, values.map { |count, value| format("%d: %.1f", count, value) }.join("  ")), *found.errors.keys].join("; ")
      end

      def table(cells) = Bench::Growth::Table.new(@counts, cells)
    end
  end
end
