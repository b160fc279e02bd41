# Installs packages without starting their services.
# Sourced, never run, after shell.bash.

# Debian asks this program before it starts a service.
services_policy=/usr/sbin/policy-rc.d
services_mark="# made by Fairlead's bin/setup while it installs packages"

# Runs a command while no service may be started. Removes the policy on any kind of exit. A policy left behind by a
# killed run has our mark, and is removed too.
without_starting_services() (
  if [[ -e $services_policy ]] && ! grep -qsxF "$services_mark" "$services_policy"; then
    "$@"
    return
  fi
  trap 'as_root rm -f "$services_policy"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  printf '#!/bin/sh\n%s\nexit 101\n' "$services_mark" | as_root install -m 755 /dev/stdin "$services_policy"
  "$@"
)
