# frozen_string_literal: true

module Bench
  # Builds the native programs a measurement needs (the load tool, the fixed-answer server) and says where they are.
  # Cargo decides what is up to date. Where there is no cargo, a program that was built before is used.
  module Binaries
    TARGET = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT)

    @built = {}

    module_function

    # A path, or nil when the program cannot be had; asked once for each.
    def load_tool
      built("fairlead-load", %w[-p fairlead-load], "crates/load/src/main.rs")
    end

    def ceiling
      built("examples/ceiling", %w[-p fairlead-engine --example ceiling], "crates/engine/examples/ceiling.rs")
    end

    def built(name, arguments, source)
      @built.fetch(name) { @built[name] = build(name, arguments, source) }
    end

    def build(name, arguments, source)
      return unless File.exist?(File.join(ROOT, source))

      path = File.join(TARGET, "release", name)
      succeeded = system("cargo", "build", "--release", "--quiet", *arguments, chdir: ROOT, exception: false)
      path if File.exist?(path) && (succeeded || succeeded.nil?)
    end
    private_class_method :built, :build
  end
end
