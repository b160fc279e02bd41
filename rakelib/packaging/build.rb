# frozen_string_literal: true

require "fileutils"
require_relative "command"
require_relative "headers"
require_relative "platform"
require_relative "source_gems"
require_relative "zig"

module Packaging
  # The built files of a platform, by Cargo's profile `gem`, with zig as the C compiler and linker: an extension for each Ruby, the native
  # programs of the server, and the load tool as a program that needs no shared library.
  class Build
    SERVER_PROGRAMS = %w[fairlead-supervisor fairlead-acme].freeze
    LOAD_TOOL = "fairlead-load"

    def initialize(platform, rubies: RUBIES)
      @platform = platform
      @rubies = rubies
    end

    # A folder with the files of the server's gem, as they lie in lib/fairlead.
    def server
      require_for(@platform.target)
      FileUtils.rm_rf(folder)
      @rubies.each do |version|
        cargo(@platform.target, "build", %w[fairlead] + SERVER_PROGRAMS, dynamic, "RUBY" => Headers.new(version, @platform).ruby)
        place(File.join(output(@platform.target, "build"), "libfairlead.#{@platform.darwin? ? "dylib" : "so"}"), "#{version}/#{@platform.extension}")
      end
      SERVER_PROGRAMS.each { |name| place(File.join(output(@platform.target, "build"), name), name) }
      folder
    end

    # The path of the load tool. Linux's also runs beside another C library.
    def load_tool
      target = @platform.static_target
      require_for(target)
      cargo(target, "static", [LOAD_TOOL], [])
      File.join(output(target, "static"), LOAD_TOOL)
    end

    def folder = File.join(TARGET, "files", @platform.name)

    private

    # An extension shares the C library with Ruby.
    def dynamic = @platform.musl? ? %w[-C target-feature=-crt-static] : []

    def cargo(target, folder, packages, flags, environment = {})
      command = [File.join(ROOT, "bin/support/reproducible"), "zigbuild", "--profile", "gem", "--locked", "--target", versioned(target),
                 "--target-dir", File.join(TARGET, folder), *Toolchain.arguments(target), *packages.flat_map { |name| ["--package", name] }]
      Command.run(Toolchain.environment(target, flags).merge(environment), *command, chdir: ROOT)
    end

    # cargo-zigbuild takes the version of glibc from there.
    def versioned(target) = target.end_with?("-gnu") ? "#{target}.#{Platform::FLOOR}" : target

    def output(target, folder) = File.join(TARGET, folder, target, "gem")

    def place(built, name)
      FileUtils.mkdir_p(File.dirname(File.join(folder, name)))
      FileUtils.cp(built, File.join(folder, name))
    end

    def require_for(target)
      if @platform.darwin? && !ENV.key?("SDKROOT")
        raise Impossible, "#{@platform.name} is linked with Apple's SDK: set SDKROOT to its folder (on a Mac: xcrun --show-sdk-path)"
      end

      Toolchain.require_standard_library(target)
    end
  end

  # Rust's compiler, its standard library for other targets, and the environment of builds.
  module Toolchain
    # Strategies of zstd that crates/wire never chooses: it compresses at level 3.
    UNUSED = %w[GREEDY LAZY LAZY2 BTLAZY2 BTOPT BTULTRA].map { |name| "-DZSTD_EXCLUDE_#{name}_BLOCK_COMPRESSOR" }.freeze

    module_function

    def require_standard_library(target)
      return if builds_for?(target)

      raise Impossible, "Rust has no standard library for #{target}: run `rustup target add #{target}`, or `rustup component add rust-src`"
    end

    def builds_for?(target) = standard_library?(target) || sources?

    # Without the built standard library, its sources.
    def arguments(target) = standard_library?(target) ? [] : %w[-Z build-std=std,panic_unwind]

    def environment(target, flags)
      # Only the built standard library brings musl's object files along; zig has its own.
      flags += %w[-C link-self-contained=no] if target.end_with?("-musl") && !standard_library?(target)
      {
        "PATH" => "#{Zig.programs}:#{ENV.fetch("PATH")}", "CARGO_ENCODED_RUSTFLAGS" => flags.join("\x1f"), "CFLAGS" => UNUSED.join(" "),
        "RUSTC_BOOTSTRAP" => ("1" unless standard_library?(target)), "SOURCE_DATE_EPOCH" => SourceGems.source_date
      }
    end

    def standard_library?(target) = File.directory?(File.join(sysroot, "lib/rustlib", target, "lib"))
    def sources? = File.directory?(File.join(sysroot, "lib/rustlib/src/rust/library/std"))
    def sysroot = @sysroot ||= Command.output(ENV.fetch("RUSTC", "rustc"), "--print", "sysroot").chomp
    private_class_method :standard_library?, :sources?
  end
end
