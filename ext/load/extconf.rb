# frozen_string_literal: true

# Builds the native programs (crates/supervisor, crates/load, crates/acme) where the gem is installed. RubyGems' Cargo builder makes libraries
# only, so this is a Makefile that calls Cargo; RubyGems says where its programs go (`sitearchdir`) and moves them into the gem.
# The program that orders certificates is built by itself: it needs other features of the common dependencies, and for those Cargo
# would compile the engine once more than for the extension.

require "rbconfig"
require "shellwords"

cargo = Shellwords.escape(ENV.fetch("CARGO", "cargo"))
manifest = Shellwords.escape(File.expand_path("../../Cargo.toml", __dir__))
build = "#{cargo} build --release --locked --manifest-path #{manifest} --target-dir target"

File.write("Makefile", <<~MAKEFILE)
  sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}

  all:
  \t#{build} --package fairlead-supervisor --package fairlead-load
  \t#{build} --package fairlead-acme

  install: all
  \tmkdir -p $(sitearchdir)/fairlead
  \tcp target/release/fairlead-supervisor target/release/fairlead-load target/release/fairlead-acme $(sitearchdir)/fairlead/
  \trm -rf target

  clean:
  \trm -rf target
MAKEFILE
