# frozen_string_literal: true

# Reports for those who have a link: what anybody may see is in public, reports.rb decides about the rest.
require "securerandom"
require_relative "reports"

run Reports.new(File.join(__dir__, "reports"), ENV.fetch("REPORTS_SECRET") { SecureRandom.hex })
