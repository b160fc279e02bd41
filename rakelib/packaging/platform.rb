# frozen_string_literal: true

module Packaging
  # The repository.
  ROOT = File.expand_path("../..", __dir__)

  # Headers of Rubies, zig and the roots of checks, for all checkouts.
  CACHE = File.join(ENV.fetch("XDG_CACHE_HOME", File.join(Dir.home, ".cache")), "fairlead")

  # Where gems are built, and the finished ones.
  TARGET = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "gems")
  PACKAGES = File.join(ROOT, "pkg")

  # The versions of Ruby for which a platform gem has an extension, oldest first.
  RUBIES = %w[3.1 3.3 3.4].freeze

  # A gem cannot be built here. The message says what is missing, and what to do.
  class Impossible < StandardError; end

  # A system for which there is a gem. +target+: Rust's name for it. +architecture+: Debian's. +loads+: names of the shared libraries that
  # files may need there.
  Platform = Struct.new(:name, :target, :architecture, :loads, keyword_init: true) do
    # The oldest glibc that the files may need; nil for another C library.
    def glibc = (Platform::FLOOR if gnu?)

    def gnu? = name.end_with?("-gnu")
    def musl? = name.end_with?("-musl")
    def darwin? = name.end_with?("-darwin")

    # True if a Debian system on this machine can run its files: with QEMU=1 also of another architecture.
    def runs_here? = gnu? && (ENV.key?("QEMU") || RUBY_PLATFORM.start_with?(name.delete_suffix("-gnu")))

    def extension = darwin? ? "fairlead.bundle" : "fairlead.so"

    # Rust's name for programs that need no C library, and the gem's platform for them: such a program runs beside any C library.
    def static_target = darwin? ? target : target.sub(/-gnu\z/, "-musl")
    def of_programs = darwin? ? name : name.sub(/-(?:gnu|musl)\z/, "")
  end

  # The systems.
  class Platform
    # From 2014: RHEL 7, Debian 8, Ubuntu 14.04.
    FLOOR = "2.17"

    GLIBC = %w[libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1].freeze
    MUSL = %w[libc.so libc.musl-x86_64.so.1 libc.musl-aarch64.so.1].freeze
    DARWIN = %w[libSystem.B.dylib Security CoreFoundation].freeze

    ALL = [
      new(name: "x86_64-linux-gnu", target: "x86_64-unknown-linux-gnu", architecture: "amd64", loads: GLIBC),
      new(name: "aarch64-linux-gnu", target: "aarch64-unknown-linux-gnu", architecture: "arm64", loads: GLIBC),
      new(name: "x86_64-linux-musl", target: "x86_64-unknown-linux-musl", architecture: "amd64", loads: MUSL),
      new(name: "aarch64-linux-musl", target: "aarch64-unknown-linux-musl", architecture: "arm64", loads: MUSL),
      new(name: "arm64-darwin", target: "aarch64-apple-darwin", loads: DARWIN),
      new(name: "x86_64-darwin", target: "x86_64-apple-darwin", loads: DARWIN)
    ].to_h { |platform| [platform.name, platform] }.freeze

    # The platform with a name, or all of them.
    def self.find(name)
      return ALL.values unless name

      [ALL.fetch(name) { abort "unknown platform #{name}; it is one of #{ALL.keys.join(", ")}" }]
    end
  end
end
