#!/usr/bin/env bash
# Installs the requirements of fabricheck: setup.sh [packages [test] | build | test | full | gpu | needs]
#   Debian packages   installed if run as root on Debian or Ubuntu, else listed
#   Python packages   the locked ones, in .venv; for test also those of the site of docs/, for full
#                     (make test-all) also a CUDA compiler
#   env.sh            to be sourced: afterwards `reframe -c reframe_checks -r` works
#   MPICH             for build, test and full: in .venv/mpich, last on the PATH of env.sh, so that it never
#                     hides the MPI of a site
# Of packages only the first, and all that a compiler needs (test: and tests). For gpu no SimGrid and no MPICH. Of needs
# only the line that installs what a compiler needs on this distribution. Skips steps that are already done. PYTHON chooses the interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
kind=${1:-run}
case $kind in
  run | packages | build | test | full | gpu | needs) ;;
  *) echo "setup: '$kind' is not packages, build, test, full, gpu or needs" >&2 && exit 2 ;;
esac

fail() {
  echo "setup: $1" >&2
  exit 3
}

case $root in
  *[[:space:]]*) fail "the folder '$root' has white space in its name, which ReFrame's job scripts do not take" ;;
esac

lists=(ci/debian-build.txt)
[ "$kind" = gpu ] || [ "$kind" = needs ] || lists+=(ci/debian-sim.txt)
lock=requirements.lock
docs=
if [ "$kind" = test ] || [ "$kind" = full ] || [ "${2:-}" = test ]; then
  lists+=(ci/debian-test.txt)
  lock=requirements-test.lock
  docs=requirements-docs.lock
fi

# needs: the line that installs what a compiler needs, by the distribution's own names.
needs() {
  if command -v apt-get > /dev/null; then
    echo "apt-get install $(tr '\n' ' ' < ci/debian-build.txt)"
  elif command -v zypper > /dev/null; then
    echo "zypper install cmake gcc-c++ cli11-devel hwloc-devel make ninja nlohmann_json-devel pkgconf python311"
  elif command -v dnf > /dev/null; then
    echo "dnf install cmake gcc-c++ cli11-devel hwloc-devel make ninja-build json-devel pkgconf python3.11" \
      "(cli11-devel and json-devel are in EPEL)"
  else
    echo "your package manager: CMake 3.21 or newer, a C++17 compiler, CLI11, hwloc, make, Ninja," \
      "nlohmann_json, pkg-config, Python 3.11 or newer"
  fi
}
[ "$kind" != needs ] || { needs && exit; }

# get ARGUMENT...: apt-get, which waits for another package manager on this machine, at most 15 min.
get() {
  local said holder waited=0
  until said=$(LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" 2>&1 > /dev/null); do
    holder=$(grep -om1 'Could not get lock.*' <<< "$said") && [ $waited -lt 900 ] \
      || { echo "$said" >&2 && return 1; }
    [ $waited -gt 0 ] || echo "setup: waiting for another package manager: $holder"
    sleep 10
    waited=$((waited + 10))
  done
}

if command -v dpkg-query > /dev/null; then
  missing=()
  while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep 'ok installed' > /dev/null \
      || missing+=("$package")
  done < <(cat "${lists[@]}")
  if [ ${#missing[@]} -gt 0 ]; then
    packages="install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
      lacking="Debian packages are missing; run as root: apt-get $packages"
    else
      echo "setup: installing Debian packages: ${missing[*]}"
      lacking=
      for command in update "$packages"; do
        get $command -o Acquire::Retries=5 || { lacking="this command failed: apt-get $command" && break; }
      done
    fi
    # What a compiler needs may come from elsewhere, as a module or of pip: CMake says what it lacks.
    if [ -n "$lacking" ]; then
      [ "$kind" = gpu ] && type -P cmake > /dev/null && type -P ninja > /dev/null || fail "$lacking"
      echo "setup: going on with the cmake and ninja that are on the PATH. $lacking"
    fi
  fi
else
  # Elsewhere CMake says what it does not find; only what setup itself needs is asked for here.
  for tool in cmake ninja; do
    command -v $tool > /dev/null || fail "$tool is missing; run as root: $(needs)"
  done
fi

[ "$kind" != packages ] || exit 0

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
  || fail "'$python' is not Python 3.11 or newer; name one by PYTHON=..."

# uv takes seconds for what takes pip a minute; without the option it trusts no certificate that the
# machine was given. An index may be slow or break off; what one attempt has downloaded is in a cache
# for the next.
install() {
  local attempt
  if [ -x .venv/bin/uv ]; then
    .venv/bin/uv pip install -q --system-certs --python .venv/bin/python $compile "$@" && return
    echo "setup: uv failed, and pip is tried" >&2
  fi
  for attempt in 1 2 3; do
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-warn-script-location --timeout 60 "$@" \
      && return
    echo "setup: pip failed (attempt $attempt of 3)" >&2
  done
  return 1
}

# Who measures may not be who may write to .venv; of what tests bring, they do not import a half.
compile=
[ "$lock" != requirements.lock ] || compile=--compile-bytecode

# Stamps hold what was installed: a lock that changed is installed again.
stamp=.venv/fabricheck-${lock%.lock}.stamp
wanted=$(cat "$lock" $docs requirements-uv.lock pyproject.toml ci/setup.sh | sha256sum)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  echo "setup: installing Python packages of $lock into .venv"
  .venv/bin/python -m pip --version > /dev/null 2>&1 || "$python" -m venv .venv
  # uv reads no configuration of pip, as one that names a mirror, or forbids an index.
  indexes=$(.venv/bin/python -m pip config list | grep index || true)
  if [ -z "$indexes" ]; then
    install --no-deps --require-hashes -r requirements-uv.lock || echo "setup: going on without uv" >&2
  fi
  # A lock has all dependencies: pip would look for newer versions of those that are asked with extras.
  install --no-deps --require-hashes -r "$lock" ${docs:+-r "$docs"}
  .venv/bin/python -m pip check > /dev/null || fail "$lock lacks something: .venv/bin/pip check"
  install --no-deps --no-build-isolation -e .
  # Where earlier versions of this script had it.
  [ ! -e .venv/bin/mpicxx ] || .venv/bin/python -m pip uninstall -q -y mpich
  echo "$wanted" > "$stamp"
fi

stamp=.venv/fabricheck-requirements-cuda.stamp
wanted=$(sha256sum < requirements-cuda.lock)
if [ "$kind" = full ] && { [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; }; then
  echo "setup: installing a CUDA compiler into .venv"
  install --no-deps --require-hashes -r requirements-cuda.lock
  echo "$wanted" > "$stamp"
fi

stamp=.venv/mpich/fabricheck.stamp
wanted=$(sha256sum < requirements-mpi.lock)
if [[ $kind =~ ^(build|test|full)$ ]] && { [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; }; then
  echo "setup: installing MPICH into .venv/mpich"
  rm -rf .venv/mpich
  install --require-hashes --no-deps --prefix "$root/.venv/mpich" -r requirements-mpi.lock
  echo "$wanted" > "$stamp"
fi

cat > env.sh <<END
# Written by ci/setup.sh. Source it, then: reframe -c reframe_checks -r
export PATH="$root/.venv/bin:\$PATH:$root/.venv/mpich/bin"
export RFM_CONFIG_FILES="$root/config/settings.py"
export FABRICHECK_RESULTS="\${FABRICHECK_RESULTS:-$root/results}"
# A container may have no /tmp that can be written, and ReFrame needs one before its first sentence.
if ! [ -w "\${TMPDIR:-/tmp}" ]; then
  export TMPDIR="\$FABRICHECK_RESULTS/tmp"
  mkdir -p "\$TMPDIR"
fi
END
