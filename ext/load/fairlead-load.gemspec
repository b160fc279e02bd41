# frozen_string_literal: true

# The gem of the load tool, which `fairlead bench` starts. It has the Rust sources of the workspace, of which ext/load/extconf.rb builds
# one program on installation. `rake gem:native` makes gems without sources, with the built program. It lies here because Bundler reads
# each specification in the first two levels of a checkout. Its paths begin at the root of the repository, where `rake gem` builds it.

require_relative "../../lib/fairlead/version"

Gem::Specification.new do |spec|
  spec.name = "fairlead-load"
  spec.version = Fairlead::VERSION
  spec.summary = "A load tool that shows each client, for HTTP, WebSocket and server-sent events"
  spec.description = "Sends HTTP/1.1 and HTTP/2 requests over several connections, or opens WebSockets and event streams, and reports " \
                     "rate, latency and losses of each connection. `fairlead bench` starts it."
  spec.authors = ["The Fairlead authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # Of the server's gem, the files that Cargo reads.
  sources = Gem::Specification.load(File.expand_path("../../fairlead.gemspec", __dir__)).files
  own = %w[ext/load/extconf.rb ext/load/exe/fairlead-load]
  spec.files = sources.grep(%r{\A(?:crates|ext)/|\ACargo\.|\ALICENSE\z}) + own
  spec.bindir = "ext/load/exe"
  spec.executables = ["fairlead-load"]
  spec.extensions = ["ext/load/extconf.rb"]
end
