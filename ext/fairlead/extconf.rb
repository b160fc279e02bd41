# frozen_string_literal: true

# Builds the extension and the native programs (crates/supervisor, crates/load, crates/acme) when the gem is installed: writes a
# Makefile that calls Cargo once. In one call, Cargo compiles what they share only once. RubyGems sets the folder for the results
# (`sitearchdir`) and moves them into the gem.

require "rbconfig"
require "shellwords"
require_relative "../../lib/fairlead/unsupported"

problem = Fairlead::Unsupported.problem
abort problem if problem

packages = %w[fairlead fairlead-supervisor fairlead-load fairlead-acme]
cargo = [ENV.fetch("CARGO", "cargo"), "build", "--release", "--locked", "--manifest-path", File.expand_path("../../Cargo.toml", __dir__),
         "--target-dir", "target", *packages.flat_map { |name| ["--package", name] }]

# The build script of the extension asks this Ruby for its headers.
File.write("Makefile", <<~MAKEFILE)
  sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}

  all:
  \tRUBY=#{Shellwords.escape(RbConfig.ruby)} #{Shellwords.join(cargo)}

  install: all
  \tmkdir -p $(sitearchdir)/fairlead
  \tcp target/release/libfairlead.#{RbConfig::CONFIG["SOEXT"]} $(sitearchdir)/fairlead/fairlead.#{RbConfig::CONFIG["DLEXT"]}
  \tcp #{packages.drop(1).map { |name| "target/release/#{name}" }.join(" ")} $(sitearchdir)/fairlead/
  \trm -rf target

  clean:
  \trm -rf target
MAKEFILE
