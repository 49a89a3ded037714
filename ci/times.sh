#!/usr/bin/env bash
# Times the commands of every day in a fresh clone of HEAD, alone on this machine: times.sh [FOLDER]
# A row for each: seconds by the clock, and of the processor. A command that fails ends it. Below a
# command of make stands where its seconds went: lines of recipes, what was compiled, tests, checks.
# What starts up is timed five times, and the least counts; its floor is what it cannot do without.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/fabricheck-times-XXXX")
trap 'rm -rf "$folder"' EXIT
git clone -q . "$folder/fabricheck"
cd "$folder/fabricheck"
# What is compiled is compiled.
unset CMAKE_CXX_COMPILER_LAUNCHER FABRICHECK_RESULTS FABRICHECK_SESSION
TIMEFORMAT='%R %U %S'

row() { printf '%-52s %8.2f %8.2f\n' "$1" "$2" "$3"; }

# once NAME COMMAND...: what it printed is shown where it fails.
once() {
  local name=$1 spent
  shift
  spent=$({ time "$@" > "$folder/out" 2>&1; } 2>&1) || { cat "$folder/out" >&2 && return 1; }
  # shellcheck disable=SC2086
  set -- $spent
  row "$name" "$1" "$(echo "$2 $3" | awk '{ print $1 + $2 }')"
}

# made NAME TARGET: make TARGET, and where its seconds went.
made() {
  local builds
  rm -f "$folder"/{recipes,tests.xml}
  touch "$folder/before"
  MAKE_TIMED=$folder/recipes once "$1" \
    make SHELL="$PWD/ci/timed.sh" PYTEST_OPTIONS="--junitxml=$folder/tests.xml" "$2"
  python3 ci/spent.py recipes "$folder/recipes"
  readarray -t builds < <(find build -name '*.o' -newer "$folder/before" 2> /dev/null \
    | cut -d / -f 1-2 | sort -u | sed 's,$,/.ninja_log,')
  python3 ci/spent.py units "${builds[@]}"
  [ ! -f "$folder/tests.xml" ] || python3 ci/spent.py tests "$folder/tests.xml"
  [ "$2" != run ] || python3 ci/spent.py checks "$(ls -t results/reports/run-*.json | sed -n 1p)"
}

# start NAME COMMAND...: the least of five.
start() {
  local name=$1 n
  shift
  for n in 1 2 3 4 5; do once "$name" "$@"; done | awk -v name="$name" '
    { wall = $(NF-1); if (!n++ || wall < least) { least = wall; spent = $NF } }
    END { printf "%-52s %8.2f %8.2f\n", name, least, spent }'
}

printf '%-52s %8s %8s\n' "$(git describe --always), $(nproc) cores" clock/s CPU/s
made "make test, in a new clone" test
made "make test, again" test
once "make check, nothing differs" make check
another=$folder/another
git clone -q . "$another"
cd "$another"
made "make run, in a new clone" run
made "make run, again" run
source ./env.sh
start "fabricheck report" fabricheck report
empty=$folder/empty.py
echo 'site_configuration = {"systems": [{"name": "one", "hostnames": [".*"], "partitions": [{"name": "p",
"scheduler": "local", "launcher": "local", "environs": ["builtin"]}]}],
"environments": [{"name": "builtin"}]}' > "$empty"
start "floor: import typer, rich" python -c 'import typer, rich.console, rich.table'
start "fabricheck --version" fabricheck --version
start "fabricheck --help" fabricheck --help
start "fabricheck verdict" fabricheck verdict
start "floor: reframe -l, no settings, no checks" \
  env RFM_CONFIG_FILES="$empty" reframe -c "$another/docs" -l
start "reframe -l" reframe -c reframe_checks -l
