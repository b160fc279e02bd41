# frozen_string_literal: true

require "json"
require "open3"

# REDbot asks about a URL what caches and browsers would ask, and takes notes of what is right and wrong with the answers.
module Redbot
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/redbot", __dir__)
  SECONDS = 120

  # +level+: GOOD, INFO, WARN or BAD.
  Note = Struct.new(:id, :level, :summary) do
    # Whatever is not known to be harmless is negative.
    def negative? = !%w[GOOD INFO].include?(level)

    def to_s = "#{level} #{id}: #{summary}"
  end

  # The status that it got, and its notes.
  Report = Struct.new(:status, :notes) do
    # +har+: the report as REDbot writes it.
    def self.parse(har)
      log = JSON.parse(har).fetch("log")
      raise Failed, log["_red_error"] if log["_red_error"]

      entry = log.fetch("entries").first or raise Failed, "REDbot has got no answer"
      new(entry.fetch("response").fetch("status"), notes(entry.fetch("_red_messages")))
    end

    # What was found out by another request is a note below a note.
    def self.notes(messages)
      messages.flat_map do |message|
        [Note.new(*message.values_at("note_id", "level", "summary")), *notes(message.fetch("subnotes", []))]
      end
    end

    def ids = notes.map(&:id)
    def negative = notes.select(&:negative?)
  end

  class << self
    # Why it cannot run on this machine; nil when it can. What it needs is pinned for one architecture.
    def unavailable
      return "REDbot's packages are pinned for x86-64" unless `uname -m`.chomp == "x86_64"

      "REDbot needs Python 3.11 with venv" unless system("python3", "-c", <<~PYTHON, %i[out err] => File::NULL)
        import ensurepip, sys, venv
        sys.exit(sys.version_info < (3, 11))
      PYTHON
    end

    # Its Report on +url+.
    def ask(url)
      output, errors, status = Open3.capture3("timeout", SECONDS.to_s, COMMAND, "-o", "har", url)
      raise Failed, "REDbot has failed (#{status})\n#{errors}" unless status.success?

      Report.parse(output)
    end
  end
end
