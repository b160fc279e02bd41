# frozen_string_literal: true

# Builds the load tool (crates/load) where the gem is installed. RubyGems' Cargo builder makes libraries only, so this is a
# Makefile that calls Cargo; RubyGems says where its program goes (`sitearchdir`) and moves it into the gem.

require "rbconfig"
require "shellwords"

cargo = Shellwords.escape(ENV.fetch("CARGO", "cargo"))
manifest = Shellwords.escape(File.expand_path("../../crates/load/Cargo.toml", __dir__))

File.write("Makefile", <<~MAKEFILE)
  sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}

  all:
  \t#{cargo} build --release --locked --manifest-path #{manifest} --target-dir target

  install: all
  \tmkdir -p $(sitearchdir)/fairlead
  \tcp target/release/fairlead-load $(sitearchdir)/fairlead/
  \trm -rf target

  clean:
  \trm -rf target
MAKEFILE
