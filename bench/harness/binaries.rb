# frozen_string_literal: true

require_relative "../../lib/fairlead/load_tool"

module Bench
  # The native programs of a measurement: the load tool, which bin/setup has built, and the fixed-answer server and the
  # router, which only measurements need and which are built here. Cargo and Go decide what is up to date. Without them,
  # a program that was built before is used.
  module Binaries
    TARGET = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT)

    module_function

    # A path, or nil if the program is not built.
    def load_tool
      path = File.join(ROOT, "lib", ::Fairlead::LoadTool::PROGRAM)
      path if File.executable?(path)
    end

    # A path, or nil if the program cannot be built; determined once.
    def ceiling
      @ceiling = build_ceiling unless defined?(@ceiling)
      @ceiling
    end

    # A path, or nil if the program cannot be built; determined once.
    def router
      @router = build_router unless defined?(@router)
      @router
    end

    def build_router
      path = File.join(TARGET, "bench/router")
      quiet = { %i[out err] => File::NULL }
      succeeded = system("go", "build", "-o", path, ".", chdir: File.join(ROOT, "bench/router"), exception: false, **quiet)
      path if File.exist?(path) && (succeeded || succeeded.nil?)
    end

    def build_ceiling
      path = File.join(TARGET, "release/examples/ceiling")
      succeeded = system("cargo", "build", "--release", "--quiet", "-p", "fairlead-engine", "--example", "ceiling", chdir: ROOT, exception: false)
      path if File.exist?(path) && (succeeded || succeeded.nil?)
    end
    private_class_method :build_ceiling, :build_router
  end
end
