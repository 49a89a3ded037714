#!/usr/bin/env bash
# From a checkout to the results on the screen: run.sh SET [SYSTEM]
#   SET     smoke, node or full
#   SYSTEM  what to measure, as ReFrame's --system; by default local:gpu on a machine with GPUs and a
#           compiler for them, else, and where FABRICHECK_SITES names site files, what ReFrame finds by
#           the host's name: a site, or the memory of any machine and a simulated node
# After `source BUNDLE/enter.sh` it takes the bundle's programs, and needs no compiler and no network.
set -euo pipefail
cd "$(dirname "$0")/.."
set_tag=$1
system=${2:-}

say() { echo "run: $1"; }
fail() {
  say "$1" >&2
  exit 3
}

# first FILE...: the first that can be executed.
first() {
  local file
  for file in "$@"; do
    [ ! -x "$file" ] || { echo "$file" && return; }
  done
}

# The drivers show their devices as files, so that no tool of a vendor and no root is needed. Tests
# have their own folder of them.
drivers=${FABRICHECK_DRIVERS:-}
kfd() { cat "$drivers"/sys/class/kfd/kfd/topology/nodes/*/properties 2> /dev/null; }
amd=$(kfd | grep -c '^simd_count [1-9]' || true)
nvidia=$(compgen -G "$drivers/dev/nvidia[0-9]*" | wc -l || true)
count=$((amd > 0 ? amd : nvidia)) gpus=none compiler= lacking=
if [ "$amd" -gt 0 ]; then
  gpus="$amd of AMD" runtime=rocm
  # Since ROCm 7.14 its packages make links in /opt/rocm only together with the package amdrocm.
  compiler=$(first "$(command -v hipcc || true)" /opt/rocm/bin/hipcc /opt/rocm/core*/bin/hipcc)
  lacking="no hipcc on the PATH or in /opt/rocm (AMD's package amdrocm-core-sdk; before ROCm 7.14 hipcc, and hip-dev or hip-devel)"
elif [ "$nvidia" -gt 0 ]; then
  gpus="$nvidia of NVIDIA" runtime=cuda
  compiler=$(first "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc)
  lacking="no nvcc on the PATH or in /usr/local/cuda (the package cuda-toolkit or nvidia-cuda-toolkit)"
fi

# remember VARIABLE VALUE: for this session, and where env.sh may be written for later ones.
remember() {
  export "$1=$2"
  [ ! -w env.sh ] || echo "export $1=$2" >> env.sh
}

# What env.sh says of programs that are there, and are not built here: of a bundle, or in an image.
bundled= image=
if [ -f .venv/fabricheck-bundle.stamp ]; then
  bundled=$(sed -n 's/^export FABRICHECK_CUDA_PROGRAMS="\(.*\)"$/\1/p' env.sh)
elif [ -f env.sh ]; then
  image=$(sed -n 's/^export FABRICHECK_IMAGE="\(.*\)"$/\1/p' env.sh)
fi
if [ -n "$image" ] && [ "$gpus" != none ] && [ "$image" != "$runtime" ]; then
  say "$gpus GPUs are not measured: this image has programs of the runtime $image, not $runtime"
  compiler=
elif [ "$image" = rocm ]; then
  [ "$gpus" != none ] \
    || fail "no GPU of AMD is in this container: start it with --device /dev/kfd --device /dev/dri --group-add keep-groups"
  compiler="the image"
fi
if [ -z "$system" ]; then
  if [ -n "${FABRICHECK_SITES:-}" ]; then
    say "measures the site that this machine's name has in FABRICHECK_SITES; SYSTEM=local:gpu measures its GPUs by themselves"
  elif [ -n "$bundled$compiler" ]; then
    system=local:gpu
  elif [ "$gpus" != none ] && [ -z "$image" ]; then
    say "$gpus GPUs are not measured, so no node is accepted: there is $lacking"
  elif [ "$gpus" = none ]; then
    say "no driver shows a GPU here: what is measured without one is a demonstration and accepts no node"
  fi
fi

if [ "$system" = local:gpu ]; then
  [ -z "$bundled" ] || [ "$nvidia" -gt 0 ] \
    || fail "the bundle's programs are for GPUs of NVIDIA, and its driver shows none: in a checkout make run measures this machine (docs/any-node.md)"
  [ "$gpus" != none ] || fail "this machine has no GPU: neither AMD's nor NVIDIA's driver shows one"
  # Ranks are placed as Open MPI 5 takes it, and their device buffers go by a UCX that knows devices.
  # grep reads to the end: by -q it stops at a match, the program that still prints is killed, and
  # pipefail takes that for a no.
  mpi=OFF ranks="none (no Open MPI 5 with such a UCX); E6, E9, E10, E12 and E15 are left out"
  if [ -n "$bundled" ]; then
    mpi=ON ranks="of the bundle"
  elif mpirun --version 2> /dev/null | grep '^mpirun (Open MPI) 5' > /dev/null \
    && ucx_info -d 2> /dev/null | grep -E "Transport: (cuda|rocm)_" > /dev/null; then
    mpi=ON ranks=$(mpirun --version | sed -n 1p)
  fi
  tests=${FABRICHECK_RCCL_TESTS:-${FABRICHECK_NCCL_TESTS:-}}
  say "GPUs          $gpus"
  say "programs      ${bundled:-built by ${compiler:-a compiler}}"
  say "MPI           $ranks"
  say "RCCL, NCCL    ${tests:-none (FABRICHECK_RCCL_TESTS or FABRICHECK_NCCL_TESTS names a folder); E11 is left out}"
  say "measures      local:gpu, set $set_tag"
  if [ -n "$image" ]; then
    remember FABRICHECK_MPI $mpi
  elif [ -z "$bundled" ]; then
    [ -n "$compiler" ] || fail "there is $lacking"
    ci/setup.sh gpu
    echo "export FABRICHECK_MPI=$mpi" >> env.sh
    export PATH="$(dirname "$compiler"):$PATH"
    mkdir -p build
    # Device code is compiled for what the driver shows (cmake/Architectures.cmake).
    cmake -G Ninja -S . -B build/$runtime -DFABRICHECK_RUNTIME=$runtime -DFABRICHECK_MPI=$mpi \
      > build/$runtime.cmake.log 2>&1 \
      || { cat build/$runtime.cmake.log >&2 && fail "CMake ended with the error above; what it may lack, this installs as root: $(ci/setup.sh needs)"; }
    say "building the programs"
    cmake --build build/$runtime -- --quiet
  fi
  source ./env.sh
  # A draft stays: what the driver shows later is compared with it.
  [ -f "$FABRICHECK_RESULTS/nodes/$(uname -n).yaml" ] || [ -n "${FABRICHECK_NODE:-}" ] || fabricheck node draft
  # The MPI is asked what it does with buffers of devices, once.
  without=FABRICHECK_${runtime^^}_MPI_WITHOUT
  if [ $mpi = ON ] && [ "$count" -gt 1 ] && [ -z "${!without+set}" ]; then
    found=$(python ci/device_mpi.py "${bundled:-build/$runtime/bin}/mpi" 2)
    if [ "$found" = all ]; then
      say "MPI takes no buffers of devices; E6, E9, E10, E12 and E15 are left out"
      remember FABRICHECK_MPI OFF
    else
      if [ -n "$found" ]; then
        why=
        ompi_info --parsable 2> /dev/null | grep -E '^mca:accelerator:(cuda|rocm):' > /dev/null \
          || why="; it is built without CUDA and ROCm"
        say "MPI crashes on buffers of devices in $found, which are left out$why"
      fi
      remember "$without" "$found"
    fi
  fi
else
  [ -n "$image" ] || make --no-print-directory build TARGET=local_programs
  source ./env.sh
fi

# What ReFrame writes goes to a log; the terminal has a line for each check, and then one screen.
status=0
mkdir -p "$FABRICHECK_RESULTS/logs"
now=$(date +%Y%m%dT%H%M%S)-$$
log=$FABRICHECK_RESULTS/logs/run-$now.log
# What is shown below is this session, whatever becomes of it.
export FABRICHECK_SESSION=${FABRICHECK_SESSION:-make-run-$now}
say "measuring, set $set_tag"
# A check that failed runs once more at the end: what fails twice is proven, what then passes is UNSTABLE.
reframe --nocolor ${system:+"--system=$system"} --mode="$set_tag" --max-retries=1 -r 2>&1 | tee "$log" | python ci/progress.py || status=$?
# Its settings refused the session (config/settings.py), or another one measured the node for too long
# (13): what is there is of an earlier one.
case $status in 2 | 3 | 4 | 13) exit "$status" ;; esac
say "writing the report"
# A bundle has no package that draws: its page is written where these are.
report=$(fabricheck report "$FABRICHECK_SESSION") || [ -n "$bundled" ] || status=$((status ? status : $?))
echo
fabricheck summary "$FABRICHECK_SESSION" || status=$((status ? status : $?))
# A session whose checks passed may still accept no node: then it ends with the verdict's status.
fabricheck verdict "$FABRICHECK_SESSION" > /dev/null || status=$((status ? status : $?))
echo
echo "$report"
echo "Log: $log"
if [ "$system" = local:gpu ]; then
  sent=$FABRICHECK_RESULTS/to-send-$(uname -n).tar.gz
  echo "To send: $(fabricheck results pack --output "$sent")"
fi
exit $status
