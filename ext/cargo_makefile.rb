# frozen_string_literal: true

require "rbconfig"
require "shellwords"

# The Makefile that RubyGems runs when it installs a gem with Rust sources: one call of Cargo, in which the packages share what they
# have in common. RubyGems sets the folder for the results (`sitearchdir`) and moves them into the gem.
module CargoMakefile
  EXTENSION = "fairlead"
  CARGO = ENV.fetch("CARGO", "cargo")
  OLDEST = Gem::Version.new(File.read(File.expand_path("../Cargo.toml", __dir__))[/^rust-version = "(.+)"/, 1])

  module_function

  # +packages+: names of packages of the workspace, with their files in the gem. Ends the installation if Rust is missing or too old.
  def write(packages)
    problem = self.problem
    abort problem if problem

    File.write("Makefile", text(packages))
  end

  # A sentence about Rust, or nil.
  def problem
    found = version(IO.popen([CARGO, "--version"], err: File::NULL, &:read))
    "cargo #{found} is too old. Install Rust #{OLDEST} or newer: https://rustup.rs" if found < OLDEST
  rescue SystemCallError
    "there is no cargo. Install Rust #{OLDEST} or newer: https://rustup.rs"
  end

  def version(text) = Gem::Version.new(text[/\d+(?:\.\d+)*/])

  # The build script of the extension asks this Ruby for its headers. Symbols would take ten times as much space.
  def text(packages)
    <<~MAKEFILE
      sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}

      all:
      \tCARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols RUBY=#{Shellwords.join([RbConfig.ruby, *cargo(packages)]).gsub("$", "$$")}

      install: all
      \tmkdir -p $(sitearchdir)/fairlead
      #{packages.map { |name| "\tcp #{result(name)} $(sitearchdir)/fairlead/#{placed(name)}" }.join("\n")}
      \trm -rf target

      clean:
      \trm -rf target
    MAKEFILE
  end

  def cargo(packages)
    [CARGO, "build", "--release", "--locked", "--manifest-path", File.expand_path("../Cargo.toml", __dir__),
     "--target-dir", "target", *packages.flat_map { |name| ["--package", name] }]
  end

  # If the user's configuration of Cargo names a target, results are in a folder of its own.
  def result(package) = %["$$(find target -maxdepth 3 -path '*/release/#{built(package)}')"]

  def built(package) = package == EXTENSION ? "libfairlead.#{RbConfig::CONFIG["SOEXT"]}" : package

  def placed(package) = package == EXTENSION ? "fairlead.#{RbConfig::CONFIG["DLEXT"]}" : package
end
