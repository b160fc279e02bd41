# frozen_string_literal: true

# A chat with rooms: the page is in public, chat.rb has the socket of the page, presence.rb tracks the visitors.
require "rack"
require_relative "chat"

POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

use Rack::Static,
    root: File.join(__dir__, "public"), urls: [""], index: "index.html", cascade: true,
    header_rules: [[:all, { "content-security-policy" => POLICY, "cache-control" => "no-cache" }]]
run Chat.new
