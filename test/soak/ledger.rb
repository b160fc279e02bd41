# frozen_string_literal: true

module Fairlead
  module Soak
    # Counts the outcomes of requests for each kind of client.
    class Ledger
      # right: correct. excused: lost because of an act of the soak. The others must not occur: lost without such a cause,
      # wrong response, another client's bytes, a fault in the soak.
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

      # Number of outcomes of a kind.
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
