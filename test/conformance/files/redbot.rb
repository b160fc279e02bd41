# frozen_string_literal: true

require "json"
require "open3"

# REDbot sends a URL the requests of caches and browsers, and notes right and wrong in the responses.
module Redbot
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/redbot", __dir__)
  SECONDS = 120

  # +level+: GOOD, INFO, WARN or BAD.
  Note = Struct.new(:id, :level, :summary) do
    # Every level that is not known to be harmless is negative.
    def negative? = !%w[GOOD INFO].include?(level)

    def to_s = "#{level} #{id}: #{summary}"
  end

  # Status of the response, and the notes about it.
  Report = Struct.new(:status, :notes) do
    # +har+: REDbot's report.
    def self.parse(har)
      log = JSON.parse(har).fetch("log")
      raise Failed, log["_red_error"] if log["_red_error"]

      entry = log.fetch("entries").first or raise Failed, "REDbot got no response"
      new(entry.fetch("response").fetch("status"), notes(entry.fetch("_red_messages")))
    end

    # Findings of further requests are notes below a note.
    def self.notes(messages)
      messages.flat_map do |message|
        [Note.new(*message.values_at("note_id", "level", "summary")), *notes(message.fetch("subnotes", []))]
      end
    end

    def ids = notes.map(&:id)
    def negative = notes.select(&:negative?)
  end

  class << self
    # Returns the reason why it cannot run on this machine; nil if it can. Its packages are pinned for one architecture.
    def unavailable
      return "REDbot's packages are pinned for x86-64" unless `uname -m`.chomp == "x86_64"

      "REDbot needs Python 3.11 with venv" unless system("python3", "-c", <<~PYTHON, %i[out err] => File::NULL)
        import ensurepip, sys, venv
        sys.exit(sys.version_info < (3, 11))
      PYTHON
    end

    # Returns its Report on +url+.
    def ask(url)
      output, errors, status = Open3.capture3("timeout", SECONDS.to_s, COMMAND, "-o", "har", url)
      raise Failed, "REDbot has failed (#{status})\n#{errors}" unless status.success?

      Report.parse(output)
    end
  end
end
