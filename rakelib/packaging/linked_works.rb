# frozen_string_literal: true

require_relative "command"
require_relative "zig"

module Packaging
  # The works in native files that are no crates: libraries in the sources of crates, and what the compilers link. The licences in a gem and
  # its bill of materials list them.
  module LinkedWorks
    # +version+: nil if the sources do not name it. +licence+: in SPDX's words.
    Work = Struct.new(:name, :version, :licence) do
      def title = [name, version].compact.join(" ")
    end

    # By crate, which has the texts of their licences.
    BUNDLED = {
      "ring" => { "BoringSSL" => "Apache-2.0 AND ISC", "fiat-crypto" => "MIT OR Apache-2.0 OR BSD-1-Clause", "once_cell" => "MIT OR Apache-2.0" },
      "tracing-core" => { "spin" => "MIT" },
      "zstd-sys" => { "zstd" => "BSD-3-Clause" }
    }.freeze

    STANDARD_LIBRARY = "rust-std"
    UNWINDER = "libunwind"
    COMPILER_RT = "compiler-rt"
    MUSL = "musl"

    module_function

    # The version of some crates ends with the library's version: 2.1.2+zstd.1.5.7.
    def in_crate(crate)
      BUNDLED.fetch(crate["name"], {}).map { |name, licence| Work.new(name, crate["version"][/\+#{name}\.(.+)/, 1], licence) }
    end

    def of_compilers(target)
      works = [Work.new(STANDARD_LIBRARY, rust, "MIT OR Apache-2.0"), Work.new(UNWINDER, nil, "Apache-2.0 WITH LLVM-exception"),
               Work.new(COMPILER_RT, Zig.version, "MIT")]
      works << Work.new(MUSL, Zig::MUSL, "MIT") if target.end_with?("-musl")
      works
    end

    def rust = Command.output(ENV.fetch("RUSTC", "rustc"), "--version")[/\Arustc (\S+)/, 1]
  end
end
