# frozen_string_literal: true

module Autobahn
  # The suite's result for one case: its report, a Hash, or nil if there is none.
  class Result
    # A close is INFORMATIONAL in the cases in which the RFC leaves the choice to the server.
    CLOSED_WELL = %w[OK INFORMATIONAL].freeze
    VERDICTS = { "OK" => :passed, "INFORMATIONAL" => :informational, "NON-STRICT" => :non_strict }.freeze

    attr_reader :id

    def initialize(id, report)
      @id = id
      @report = report
    end

    # The first number of the case.
    def group = Integer(id[/\A\d+/], 10)

    # Returns :passed, :informational, :non_strict or :failed. Everything that is not known to be good has failed: a wrong
    # response, a wrong code, an end without a close frame, a close that was left to the client, or a declined extension.
    def verdict
      return :failed unless @report && CLOSED_WELL.include?(@report.fetch("behaviorClose"))

      VERDICTS.fetch(@report.fetch("behavior"), :failed)
    end

    def failed? = verdict == :failed
    def non_strict? = verdict == :non_strict

    # Description, expectation and result.
    def to_s
      return "case #{id}: there is no report" unless @report

      "case #{id}: #{@report["behavior"]}, close: #{@report["behaviorClose"]} (code #{@report["remoteCloseCode"].inspect})\n" \
        "  #{text("description")}\n  expected: #{text("expectation")}\n  #{text("result")} #{text("resultClose")} #{text("wasNotCleanReason")}"
    end

    private

    # The reports contain HTML.
    def text(key) = @report[key].to_s.gsub(/<[^>]*>/, " ").squeeze(" \n").strip
  end
end
