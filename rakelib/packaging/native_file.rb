# frozen_string_literal: true

require_relative "command"

module Packaging
  # An ELF file of any architecture, as readelf sees it.
  class NativeFile
    def initialize(path)
      @path = path
    end

    # The names of the shared libraries that it needs.
    def libraries = readelf("--dynamic").scan(/\(NEEDED\).*\[(.+)\]/).flatten

    # The newest version of glibc of which it needs a symbol; nil without glibc.
    def glibc = readelf("--version-info").scan(/\bGLIBC_(\d+(?:\.\d+)+)/).flatten.max_by { |version| Gem::Version.new(version) }

    def stripped? = !readelf("--section-headers").match?(/ \.(?:symtab|debug_\w+) /)

    # True if it lists the crates that it was built from (cargo-auditable).
    def lists_crates? = readelf("--section-headers").include?(" .dep-v0 ")

    private

    def readelf(what) = Command.output({ "LC_ALL" => "C" }, "readelf", "--wide", what, @path)
  end
end
