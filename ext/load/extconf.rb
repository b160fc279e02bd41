# frozen_string_literal: true

# Builds the native programs (crates/supervisor, crates/load, crates/acme) when the gem is installed. RubyGems' Cargo
# builder only makes libraries, so this writes a Makefile that calls Cargo. RubyGems sets the folder for the programs
# (`sitearchdir`) and moves them into the gem.
# Cargo builds the program that orders certificates in a call of its own: that program needs other features of the common
# dependencies, and with them Cargo would compile the engine a second time.

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
