# frozen_string_literal: true

# Reports behind secret links: public has the files for everybody, reports.rb decides about the others.
require "securerandom"
require_relative "reports"

run Reports.new(File.join(__dir__, "reports"), ENV.fetch("REPORTS_SECRET") { SecureRandom.hex })
