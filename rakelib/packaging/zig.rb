# frozen_string_literal: true

require_relative "command"

module Packaging
  # Zig, the C compiler and linker for all targets, and cargo-zigbuild, which calls it: both from PyPI, in a virtual environment.
  module Zig
    FOLDER = File.join(CACHE, "zig")
    PACKAGES = %w[ziglang==0.17.1 cargo-zigbuild==0.24.1].freeze

    # In this zig: lib/libc/musl/src/internal/version.h.
    MUSL = "1.2.5"

    module_function

    # The folder for the PATH.
    def programs
      return bin if File.exist?(stamp) && File.read(stamp) == PACKAGES.join(" ")

      Command.output("python3", "-m", "venv", "--clear", FOLDER)
      Command.output(File.join(bin, "pip"), "install", "--quiet", *PACKAGES)
      File.write(stamp, PACKAGES.join(" "))
      bin
    end

    def version = PACKAGES.first[/==(.+)/, 1]

    def bin = File.join(FOLDER, "bin")
    def stamp = File.join(FOLDER, "packages")
    private_class_method :bin, :stamp
  end
end
