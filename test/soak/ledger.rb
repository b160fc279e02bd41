# frozen_string_literal: true

module Fairlead
  module Soak
    # Counts, for each kind of client, what became of what it asked.
    class Ledger
      # right: as it had to be. excused: lost, by something that the soak itself did. The others must not be: lost without
      # such a cause, not what was asked for, somebody else's bytes, a mistake of the soak.
      OUTCOMES = %i[right excused lost wrong mixed broken].freeze
      FAILURES = OUTCOMES - %i[right excused]
      SHOWN = 3

      Failure = Struct.new(:outcome, :kind, :number, :text)

      attr_reader :failures

      def initialize
        @lock = Mutex.new
        @counts = Hash.new { |counts, kind| counts[kind] = OUTCOMES.to_h { |outcome| [outcome, 0] } }
        @failures = []
      end

      def record(kind, number, outcome, text = nil)
        @lock.synchronize do
          @counts[kind][outcome] += 1
          @failures << Failure.new(outcome, kind, number, text) if FAILURES.include?(outcome)
        end
      end

      def kinds = @lock.synchronize { @counts.keys.sort }

      # How many of a kind there were.
      def count(kind) = @lock.synchronize { @counts[kind].values.sum }

      def failed?(kind) = FAILURES.any? { |outcome| @counts[kind][outcome].positive? }

      # A line for each kind, then the first failures of each.
      def lines
        kinds.map { |kind| line(kind) } + shown.map { |failure| "  #{failure.outcome} in #{failure.kind} #{failure.number}: #{failure.text}" }
      end

      private

      def line(kind)
        counts = @counts[kind].reject { |outcome, count| count.zero? && outcome != :right }
        format("  %-6s %-12s %s", failed?(kind) ? "FAILED" : "ok", kind, counts.map { |outcome, count| "#{count} #{outcome}" }.join(", "))
      end

      def shown = @failures.group_by { |failure| [failure.kind, failure.outcome] }.values.flat_map { |failures| failures.first(SHOWN) }
    end
  end
end
