# frozen_string_literal: true

# The gem of the server: Ruby, and the Rust sources of its extension and its native programs, which ext/fairlead/extconf.rb builds on
# installation. `rake gem:native` makes gems without sources, for one platform each.
# Every crate of the workspace travels along, because Cargo reads the manifests of all members.

require_relative "lib/fairlead/version"

Gem::Specification.new do |spec|
  spec.name = "fairlead"
  spec.version = Fairlead::VERSION
  spec.summary = "A fair Ruby application server with a Rust core"
  spec.description = "Runs Rack applications a request at a time, so that no client waits while another one is served " \
                     "again and again. Sockets, HTTP, scheduling and the supervisor are Rust; the application runs in Ruby processes."
  spec.authors = ["The Fairlead authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  shipped = %r{\A(?:(?:crates|exe|ext|lib|sig)/|(?:CHANGELOG\.md|Cargo\.lock|Cargo\.toml|LICENSE|README\.md)\z)}
  ignored = %r{\.(?:so|bundle)\z|/target/|/fairlead-(?:load|acme|supervisor)\z|\Aext/load/}
  paths = begin
    IO.popen(%w[git ls-files -z --cached --others --exclude-standard], chdir: __dir__, err: File::NULL, &:read).split("\0")
  rescue Errno::ENOENT
    []
  end
  paths = Dir.glob("**/*", base: __dir__) if paths.empty? # an unpacked archive, or no git
  spec.files = paths.select { |path| shipped.match?(path) && !ignored.match?(path) && File.file?(File.join(__dir__, path)) }
  spec.bindir = "exe"
  spec.executables = %w[fairlead fairlead-iodine]
  spec.extensions = ["ext/fairlead/extconf.rb"]

  spec.add_dependency "rack", ">= 2.2", "< 4"
end
