# Common parts of the scripts in bin/: the checkout's path, messages, Debian's packages, and Cargo's build folder for
# each Ruby.
# Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Rustup puts cargo on the PATH only in a new shell; here it is enough that it is installed.
[[ $PATH == *"/.cargo/bin"* ]] || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$(basename "$0"): $*"
  exit 1
}

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# The machine's mirrors with another release of Debian: "URI SUITE" of every package index.
debian_mirrors() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | sort -u |
    awk -v release="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" -v suite="$1" \
      '$2 == release || index($2, release "-") == 1 { sub(release, suite, $2); print }'
}

cargo_target() { printf '%s\n' "${CARGO_TARGET_DIR:-$root/target}"; }

# Builds the code for systems other than Linux from now on, in a folder of its own.
choose_portable() {
  if [[ ${FAIRLEAD_PORTABLE-} ]]; then return; fi
  CARGO_TARGET_DIR=$(cargo_target)/portable
  export FAIRLEAD_PORTABLE=1 CARGO_TARGET_DIR RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }--cfg fairlead_portable"
}

# Prints "ABI SOEXT DLEXT" of the Ruby on the PATH: its ABI, and its system's suffixes of libraries and extensions.
ruby_names() {
  ruby --disable-gems -r rbconfig -e '
    abort "Fairlead needs Ruby 3.1 or newer, this is #{RUBY_VERSION}" if RUBY_VERSION < "3.1"
    names = RbConfig::CONFIG.values_at("ruby_version", "arch", "SOEXT", "DLEXT")
    puts "#{names[0]}-#{names[1]} #{names[2]} #{names[3]}"'
}

# Each Ruby ABI has its own build folder, so that changing Rubies neither mixes nor repeats builds.
extension_target() {
  local abi
  abi=$(ruby_names) || exit
  printf '%s/ruby-%s\n' "$(cargo_target)" "${abi%% *}"
}
