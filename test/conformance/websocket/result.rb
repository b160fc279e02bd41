# frozen_string_literal: true

module Autobahn
  # What the suite has found in one case: its report, a Hash, or nil when there is none.
  class Result
    # A close is INFORMATIONAL in the cases in which a server may do as it likes.
    CLOSED_WELL = %w[OK INFORMATIONAL].freeze
    VERDICTS = { "OK" => :passed, "INFORMATIONAL" => :informational, "NON-STRICT" => :non_strict }.freeze

    attr_reader :id

    def initialize(id, report)
      @id = id
      @report = report
    end

    # The first number of the case.
    def group = Integer(id[/\A\d+/], 10)

    # :passed, :informational, :non_strict or :failed. Everything that is not known to be good has failed: a wrong answer,
    # a wrong code, an end without a close frame, one that was left to the client, an extension that was turned down.
    def verdict
      return :failed unless @report && CLOSED_WELL.include?(@report.fetch("behaviorClose"))

      VERDICTS.fetch(@report.fetch("behavior"), :failed)
    end

    def failed? = verdict == :failed
    def non_strict? = verdict == :non_strict

    # What was tried, what should have come of it, and what did.
    def to_s
      return "case #{id}: there is no report" unless @report

      "case #{id}: #{@report["behavior"]}, close: #{@report["behaviorClose"]} (code #{@report["remoteCloseCode"].inspect})\n" \
        "  #{text("description")}\n  expected: #{text("expectation")}\n  #{text("result")} #{text("resultClose")} #{text("wasNotCleanReason")}"
    end

    private

    # The reports are made for browsers.
    def text(key) = @report[key].to_s.gsub(/<[^>]*>/, " ").squeeze(" \n").strip
  end
end
