# frozen_string_literal: true

# A clock that ticks on the server: the page is in public, clock.rb has the stream of events of the page.
require "rack"
require_relative "clock"

POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

use Rack::Static,
    root: File.join(__dir__, "public"), urls: [""], index: "index.html", cascade: true,
    header_rules: [[:all, { "content-security-policy" => POLICY, "cache-control" => "no-cache" }]]
run Clock.new
