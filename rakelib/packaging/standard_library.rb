# frozen_string_literal: true

require "cgi"
require_relative "command"
require_relative "platform"

module Packaging
  # The copyright notices of Rust's standard library and of the crates in it, from the page that comes with the compiler, or from Debian's
  # package.
  class StandardLibrary
    PAGE = "share/doc/rust/COPYRIGHT-library.html"
    DEBIAN = %w[share/doc/libstd-rust-dev/copyright share/doc/rustc/copyright].freeze
    HOLDER = "The Rust Project Developers"

    # Crates of other systems, of its tests and of its build.
    OTHERS = /\A(?:windows|wasi|wit-bindgen|r-efi|fortanix|hermit|moto|vex|dlmalloc|unwinding|cc|shlex|getopts|rand)(?=[-_])/

    def initialize(sysroot)
      @sysroot = sysroot
    end

    # A list of texts.
    def texts
      return [read(debian)] unless File.exist?(path(PAGE))

      own, *crates = File.read(path(PAGE), encoding: "UTF-8").split(/<h3>\W*(?=\w)/)
      crates = crates.grep_v(OTHERS).grep(/\A[\w-]+-\d/)
      [plain(own[/<h2 id="in-tree-files">.*/m]), *licences, *crates.map { |part| plain(part) }]
    end

    private

    def path(name) = File.join(@sysroot, name)

    def read(name) = File.read(path(name), encoding: "UTF-8")

    def debian
      DEBIAN.find { |name| File.exist?(path(name)) } or
        raise Impossible, "the compiler has no copyright notices of its standard library: use a newer one of rustup, or Debian's"
    end

    # The page only names these.
    def licences = [Licences.mit(HOLDER), read("share/doc/rust/licenses/Unicode-3.0.txt")]

    def plain(html) = CGI.unescapeHTML(html.gsub(/<[^>]*>/, "")).gsub(/^[ \t]+$/, "").gsub(/\n{3,}/, "\n\n").strip
  end
end
