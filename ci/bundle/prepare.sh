#!/usr/bin/env bash
# Makes the .venv and the env.sh of a checkout from the bundle of this script: prepare.sh CHECKOUT
#   PYTHON                    the interpreter, of the version for which the bundle was made
#   FABRICHECK_NCCL_LIBRARY   the folder of libnccl.so.2, if neither that Python nor the
#                             system has it
# Skips steps that are already done. Needs no pip and no network.
set -euo pipefail

fail() {
  echo "enter: $1" >&2
  exit "${2:-3}"
}

[ $# -eq 1 ] || fail "this takes the folder of a checkout, and has $# arguments" 2
bundle=$(cd "$(dirname "$0")" && pwd -P)
[ -f "$1/config/settings.py" ] && [ -f "$1/src/fabricheck/__init__.py" ] \
  || fail "'$1' is not a checkout of fabricheck: source this in one" 2
cd "$1"
root=$PWD
for folder in "$root" "$bundle"; do
  case $folder in
    *[[:space:]]*) fail "the folder '$folder' has white space in its name, which ReFrame's job \
scripts do not take" ;;
  esac
done

PATH=${PATH//"$root/.venv/bin:"/}  # entered before: not the Python made here
python=${PYTHON:-python3}
wanted=$(sed -n 's/^python //p' "$bundle/about.txt")
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) \
  || fail "'$python' is not a Python interpreter; name one of version $wanted by PYTHON=..."
[ "$version" = "$wanted" ] \
  || fail "'$python' is Python $version, and the bundle is for $wanted; name one by PYTHON=..."

# The stamp holds what was made of what: a bundle that moved or changed is taken anew.
stamp=.venv/fabricheck-bundle.stamp
made="$root $bundle $("$python" -c 'import sys; print(sys.executable)') $(sha256sum < "$bundle/SHA256SUMS")"
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$made" ]; then
  [ ! -e .venv ] || [ -f "$stamp" ] \
    || fail "$root/.venv exists and is of no bundle; take a checkout of its own for the bundle, or remove it"
  (cd "$bundle" && sha256sum --quiet --check SHA256SUMS) > /dev/null 2>&1 \
    || fail "$bundle is not as it was written (sha256sum --check SHA256SUMS there says where); copy it again"
  echo "enter: making .venv of $bundle"
  rm -rf .venv
  mkdir .venv
  echo unfinished > "$stamp"
  "$python" -m venv --without-pip .venv > /dev/null || fail "'$python' makes no virtual environment"
  packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  printf '%s\n' "$root/src" "$bundle/site" > "$packages/fabricheck-bundle.pth"
  for command in reframe:reframe.frontend.cli:main fabricheck:fabricheck.cli:app; do
    IFS=: read -r name module function <<< "$command"
    printf '#!%s\nimport sys\n\nfrom %s import %s\n\nsys.exit(%s())\n' \
      "$root/.venv/bin/python" "$module" "$function" "$function" > ".venv/bin/$name"
    chmod +x ".venv/bin/$name"
    error=$(.venv/bin/python -c "import $module" 2>&1) \
      || fail "the packages of $bundle lack something of $module: ${error##*$'\n'}"
  done
  echo "$made" > "$stamp"
fi

libraries=$bundle/ucx/libucx/lib
tools=
if [ -d "$bundle/osu" ]; then
  tools+="export FABRICHECK_CUDA_OSU=\"$bundle/osu/osu-micro-benchmarks\""$'\n'
fi
if [ -d "$bundle/nccl-tests" ]; then
  nccl=${FABRICHECK_NCCL_LIBRARY:-}
  if [ -n "$nccl" ]; then
    [ -e "$nccl/libnccl.so.2" ] \
      || fail "FABRICHECK_NCCL_LIBRARY names '$nccl', which has no libnccl.so.2" 2
  else
    nccl=$("$python" -c '
import sys
from pathlib import Path
folders = (Path(entry, "nvidia/nccl/lib") for entry in sys.path if entry)
print(next((str(one) for one in folders if (one / "libnccl.so.2").exists()), ""))')
  fi
  if [ -n "$nccl" ]; then
    libraries+=:$nccl
  elif ! { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2> /dev/null \
    | grep 'libnccl\.so\.2 ' > /dev/null; }; then
    fail "there is no libnccl.so.2 here for nccl-tests; name its folder by FABRICHECK_NCCL_LIBRARY=..."
  fi
  tools+="export FABRICHECK_NCCL_TESTS=\"$bundle/nccl-tests\""$'\n'
fi

cat > env.sh << END
# Written by $bundle/prepare.sh. Source it, then: reframe -c reframe_checks -r
export PATH="$root/.venv/bin:$bundle/mpi/bin:\$PATH"
export RFM_CONFIG_FILES="$root/config/settings.py"
export FABRICHECK_RESULTS="\${FABRICHECK_RESULTS:-$root/results}"
# A container may have no /tmp that can be written, and ReFrame needs one before its first sentence.
if ! [ -w "\${TMPDIR:-/tmp}" ]; then
  export TMPDIR="\$FABRICHECK_RESULTS/tmp"
  mkdir -p "\$TMPDIR"
fi
export FABRICHECK_CUDA_PROGRAMS="$bundle/bin"
$tools
export OPAL_PREFIX="$bundle/mpi"
# UCX with CUDA comes before the one that Open MPI brings.
export LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
# Ranks of one node, device buffers through CUDA: no network is looked for.
export OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export UCX_TLS=self,sm,cuda_copy,cuda_ipc
if [ "\$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# NVLink SHARP needs the fabric manager's multicast, which containers often lack.
export NCCL_NVLS_ENABLE="\${NCCL_NVLS_ENABLE:-0}"
END
