# Runs steps one after the other: one line each, the end of its log if it fails, and a sum at the end. A line has the
# seconds that the step took, and the CPU seconds of its processes.
# Sourced, never run, after shell.bash.
#
#   check NAME COMMAND…     one result: it passes if the command does
#   tests NAME COMMAND…     the results that cargo test or minitest report; none at all is a failure
#   build NAME COMMAND…     no result: prepares the step of that name; the step's time limit begins afterwards
#   unlimited STEP…         such a step without the limit, for commands that mostly compile, at the machine's speed
#   finish                  names the tests that failed, prints "N passed, M failed" and exits accordingly

step_seconds=${FAIRLEAD_STEP_SECONDS:-2100}
logs=$(cargo_target)/log
passed=0 failed=0 skipped=0
failures=$(mktemp)

check() { step verdict "$@"; }
tests() { step reported "$@"; }

unlimited() {
  local step_seconds=0
  "$@"
}

# If it fails, the step fails too and prints why.
build() {
  mkdir -p "$logs"
  if [[ -t 1 ]]; then printf '  …       %s\r' "$1"; fi
  unlimited run_limited "${@:2}" >"$logs/$1-build.log" 2>&1 || true
}

step() {
  local kind=$1 name=$2 status=0 started=$SECONDS self=$BASHPID results used
  local log=$logs/$name.log
  shift 2
  mkdir -p "$logs"
  if [[ -t 1 ]]; then printf '  …       %s\r' "$name"; fi
  used=$(cpu_seconds "$self")
  run_limited "$@" >"$log" 2>&1 || status=$?
  results=$("$kind" "$status" <"$log")
  add "$results"
  report "$name" "$results" "$((SECONDS - started))" "$(($(cpu_seconds "$self") - used))"
  if ((SECONDS - started >= 60)); then show_slowest "$log"; fi
  name_hung "$log" | tee -a "$failures"
  if [[ $results != *" 0 "* ]]; then show_failure "$log" "$status"; else show_unsteady "$log"; fi
}

# 0 seconds mean no limit. The command has its own process group, which is killed as a whole: on a timeout, or if the
# user interrupts.
run_limited() {
  local child status=0
  set -m
  timeout --kill-after=10 "$step_seconds" "$@" </dev/null &
  child=$!
  set +m
  trap 'kill -TERM -- "-$child"; exit 130' INT TERM
  wait "$child" || status=$?
  trap - INT TERM
  return "$status"
}

# CPU time of the processes that a shell has waited for, and of theirs. `times` in a substitution would count the subshell's.
cpu_seconds() { awk '{ print int(($16 + $17) / 100) }' "/proc/$1/stat"; }

# Both functions print "passed failed skipped" for a command that ended with a status.
verdict() {
  if (($1)); then echo 0 1 0; else echo 1 0 0; fi
}

reported() {
  awk -v status="$1" '
    /^test result: / { passed += $4; failed += $6; skipped += $8 }
    /^[0-9]+ runs, [0-9]+ assertions, / { failed += $5 + $7; skipped += $9; passed += $1 - $5 - $7 - $9 }
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; skipped += $5 }
    /^failed: / { failed++ }
    END {
      if (!failed && (status != 0 || passed + skipped == 0)) failed = 1
      print passed + 0, failed + 0, skipped + 0
    }'
}

add() {
  local ok bad left_out
  read -r ok bad left_out <<<"$1"
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + left_out))
}

summary() {
  printf '%d passed, %d failed' "$1" "$2"
  if (($3)); then printf ', %d skipped' "$3"; fi
}

report() {
  local ok bad left_out word=ok
  read -r ok bad left_out <<<"$2"
  if ((bad)); then word=FAILED; fi
  printf '  %-6s  %-14s %-36s %4d s %5d s CPU\n' "$word" "$1" "$(summary "$ok" "$bad" "$left_out")" "$3" "$4"
}

show_failure() {
  local log=$1 status=$2
  if ((status == 124)); then printf 'It was ended after %d seconds.\n' "$step_seconds"; fi
  name_failures "$log" | tee -a "$failures"
  printf -- '--- the end of %s (exit status %d)\n' "$log" "$status"
  tail -n 200 "$log"
  printf -- '---\n'
}

# The failed tests, each with its location and the first line of its message: minitest's, then cargo's. Tests that
# passed at the second attempt are indented in the log, and not named. A test that failed twice is named once. A file that
# has run no test is named by bin/support/ruby-tests.
name_failures() {
  awk '
    /^ +[0-9]+\) (Failure|Error):$/ { wanted = 2; next }
    wanted && wanted-- { text = text (text == "" ? "" : " ") $0; if (!wanted) { print "failed: " text; text = "" } }
    /^test .* \.\.\. FAILED$/ { print "failed: " $2 }
    /^[^ ]+ --- FAILED$/ { print "failed: " $1 }
    /^failed: /
  ' "$1" | awk '!seen[$0]++' | first 40
}

# Prints the kernel's report on the threads of each worker that showed no sign of life. The cause is rarely seen twice,
# and the end of a log may omit it.
name_hung() { sed -nE 's/^.*(worker [0-9]+ \(pid [0-9]+\) has shown no sign of life.*)$/hung: \1/p' "$1" | sort -u | first 20; }

# Reads all of its input, unlike head: a long log would end its writer with SIGPIPE, and that would end the script.
first() { awk -v lines="$1" 'NR <= lines'; }

# The slowest parts of a long step, see bin/support/ruby-tests.
show_slowest() { sed -nE 's/^(alone|slowest): +/                          \1 /p' "$1" | first 6; }

# Tests that passed only at the second attempt, see bin/support/ruby-tests; of each, the end of its first output, where the
# failure is.
show_unsteady() {
  awk -v most=40 '
    function show(from) {
      for (from = count > most ? count - most : 0; from < count; from++) print lines[from]
      count = 0
    }
    /^unsteady: / { show(); print; inside = 1; next }
    inside { lines[count++] = $0 }
    END { show() }' "$1"
}

finish() {
  sort -u "$failures"
  rm -f "$failures"
  summary "$passed" "$failed" "$skipped"
  printf '\n'
  if ((failed)); then exit 1; fi
  exit 0
}
