#!/usr/bin/env bash
# Tests fabricheck with another ReFrame: newest-reframe.sh [WHAT]
#   WHAT   in the form of pip: reframe-hpc==4.9.3, or a folder with ReFrame's sources; by default
#          the newest release, including pre-releases
# Runs the tests of the parts of ReFrame that fabricheck needs, and the set smoke on the simulated
# node, in build/newest-reframe: the packages of .venv, with that ReFrame before the pinned one.
# Exit codes: 0 nothing breaks, 1 something does, 2 bad usage, 3 that ReFrame cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # CODE SENTENCE
  echo "newest-reframe: $2" >&2
  exit "$1"
}
[ $# -le 1 ] || fail 2 "this takes one ReFrame, and has $# arguments"
what=${1:-reframe-hpc}

ci/setup.sh test
[ -x build/sim/bin/stream ] || make --no-print-directory programs BUILDS=sim

folder=$PWD/build/newest-reframe
rm -rf "$folder"
mkdir -p "$folder"
.venv/bin/python -m venv "$folder/venv"
bin=$folder/venv/bin
packages() { "$1/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
echo "import site; site.addsitedir('$(packages "$PWD/.venv/bin")')" > "$(packages "$bin")/pinned.pth"
install() {
  "$bin/python" -m pip install -q --disable-pip-version-check --timeout 60 "$@" > "$folder/pip.log" 2>&1 \
    || fail 3 "pip installs no $what: $(grep -i '^error' "$folder/pip.log" | tail -n 1)"
}
install --no-deps --ignore-installed --pre "$what"
install reframe-hpc # what it needs beyond the packages of .venv
printf '#!%s\nimport sys\n\nfrom fabricheck.cli import app\n\nsys.exit(app())\n' "$bin/python" > "$bin/fabricheck"
chmod +x "$bin/fabricheck"

version() { "$1/python" -c 'import reframe; print(reframe.VERSION)'; }
echo "ReFrame $(version "$bin"), where $(version .venv/bin) is pinned"
broken=0

echo "== what fabricheck needs of it"
"$bin/python" -m pytest -q --tb=no -p no:cacheprovider tests/rfm/test_reframe_internals.py || broken=1

echo "== the set smoke on the simulated node"
export RFM_CONFIG_FILES=$PWD/config/settings.py FABRICHECK_RESULTS=$folder/results
if "$bin/reframe" --nocolor --system=local:sim-mi250x --mode=smoke -r > "$folder/session.log" 2>&1; then
  grep -E '^\[ +(PASSED|FAILED)' "$folder/session.log"
  "$bin/fabricheck" results validate > "$folder/validate.log" || broken=1
  grep -v ': valid' "$folder/validate.log" || true
  "$bin/fabricheck" verdict || broken=1
else
  broken=1
  grep -m 20 -E 'ERROR|error:|FAILED|Reason' "$folder/session.log" || tail -n 5 "$folder/session.log"
fi
exit $broken
