# frozen_string_literal: true

require_relative "../../lib/fairlead/load_tool"

module Bench
  # The native programs a measurement needs: the load tool, which bin/setup has built, and the fixed-answer server, which only
  # measurements need and which is built here. Cargo decides what is up to date. Where there is no cargo, a program that was
  # built before is used.
  module Binaries
    TARGET = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT)

    module_function

    # A path, or nil when the program is not built.
    def load_tool
      path = File.join(ROOT, "lib", ::Fairlead::LoadTool::PROGRAM)
      path if File.executable?(path)
    end

    # A path, or nil when the program cannot be had; asked once.
    def ceiling
      @ceiling = build_ceiling unless defined?(@ceiling)
      @ceiling
    end

    def build_ceiling
      path = File.join(TARGET, "release/examples/ceiling")
      succeeded = system("cargo", "build", "--release", "--quiet", "-p", "fairlead-engine", "--example", "ceiling", chdir: ROOT, exception: false)
      path if File.exist?(path) && (succeeded || succeeded.nil?)
    end
    private_class_method :build_ceiling
  end
end
