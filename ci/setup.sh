#!/usr/bin/env bash
# Sets up what fabricheck needs: setup.sh [test]
#   Debian packages   installed when run as root on Debian or Ubuntu, else named
#   Python packages   the locked ones, in .venv
#   env.sh            to be sourced: afterwards `reframe -c reframe_checks -r` works
# Does nothing that is already done. PYTHON chooses the interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
kind=${1:-run}

fail() {
  echo "setup: $1" >&2
  exit 3
}

case $root in
  *[[:space:]]*) fail "the folder '$root' has white space in its name, which ReFrame's job scripts do not take" ;;
esac

lists=(ci/debian-build.txt)
lock=requirements.lock
if [ "$kind" = test ]; then
  lists+=(ci/debian-test.txt)
  lock=requirements-test.lock
fi

if command -v dpkg-query > /dev/null; then
  missing=()
  while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' \
      || missing+=("$package")
  done < <(cat "${lists[@]}")
  if [ ${#missing[@]} -gt 0 ]; then
    command="apt-get install -y --no-install-recommends ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || fail "Debian packages are missing; run as root: $command"
    echo "setup: installing Debian packages: ${missing[*]}"
    apt-get update -qq -o Acquire::Retries=5
    DEBIAN_FRONTEND=noninteractive $command -o Acquire::Retries=5 > /dev/null \
      || fail "this command failed: $command"
  fi
else
  # Elsewhere CMake says what it does not find; only what setup itself needs is asked for here.
  command -v cmake > /dev/null || fail "cmake is missing (3.21 or newer), and for the build: \
a C++17 compiler, CLI11, nlohmann_json, hwloc, pkg-config"
fi

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
  || fail "'$python' is no Python 3.11 or newer; name one by PYTHON=..."

# An index may be slow or break off; what one attempt has downloaded is in pip's cache for the next.
install() {
  local attempt
  for attempt in 1 2 3; do
    .venv/bin/python -m pip install -q --disable-pip-version-check --timeout 60 "$@" && return
    echo "setup: pip failed (attempt $attempt of 3)" >&2
  done
  return 1
}

# The stamp holds what was installed: a lock that changed is installed again.
stamp=.venv/fabricheck-$kind.stamp
wanted=$(cat "$lock" pyproject.toml ci/setup.sh | sha256sum)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  echo "setup: installing Python packages of $lock into .venv"
  .venv/bin/python -m pip --version > /dev/null 2>&1 || "$python" -m venv .venv
  install --require-hashes -r "$lock"
  install --no-deps --no-build-isolation -e .
  echo "$wanted" > "$stamp"
fi

cat > env.sh <<END
# Written by ci/setup.sh. Source it, then: reframe -c reframe_checks -r
export PATH="$root/.venv/bin:\$PATH"
export RFM_CONFIG_FILES="$root/config/settings.py"
export FABRICHECK_RESULTS="\${FABRICHECK_RESULTS:-$root/results}"
END
