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

    private

    def readelf(what) = Command.output({ "LC_ALL" => "C" }, "readelf", "--wide", what, @path)
  end
end
