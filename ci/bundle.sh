#!/usr/bin/env bash
# Prepares the files for an NVIDIA machine without a network to run the suite: docs/install.md
set -euo pipefail
usage="bundle.sh OUT [--python 3.12] [--cuda-architecture 90] [--nccl-tests SOURCES] [--osu SOURCES] [--openmpi SOURCES]"

say() { echo "bundle: $1"; }
refuse() {
  echo "bundle: $1" >&2
  exit "${2:-2}"
}
fail() { refuse "$1" 3; }

out=
target_python=3.12
architectures=90
nccl_tests=
osu=
openmpi=
while [ $# -gt 0 ]; do
  case $1 in
    --help) echo "$usage" && exit ;;
    --python | --cuda-architecture | --nccl-tests | --osu | --openmpi)
      [ $# -gt 1 ] || refuse "$1 has no value: $usage"
      case $1 in
        --python) target_python=$2 ;;
        --cuda-architecture) architectures=$2 ;;
        --nccl-tests) nccl_tests=$2 ;;
        --osu) osu=$2 ;;
        --openmpi) openmpi=$2 ;;
      esac
      shift 2
      ;;
    -*) refuse "'$1' is no option: $usage" ;;
    *)
      [ -z "$out" ] || refuse "there are two folders to write, '$out' and '$1': $usage"
      out=$1
      shift
      ;;
  esac
done
[ -n "$out" ] || refuse "there is no folder to write: $usage"
[[ $target_python =~ ^3\.[0-9]+$ ]] || refuse "'$target_python' is not a Python version such as 3.12"
[ "${target_python#3.}" -ge 11 ] || refuse "Python $target_python is too old: 3.11 or newer"
[[ $architectures =~ ^[0-9]+a?(,[0-9]+a?)*$ ]] \
  || refuse "'$architectures' is not a list of CUDA architectures such as 90 or 80,90"

# sources OPTION FOLDER FILE: the whole path of a folder with sources, which holds this file.
sources() {
  [ -d "$2" ] || refuse "there is no folder '$2', which $1 names"
  [ -f "$2/$3" ] || refuse "the folder '$2', which $1 names, has no $3: it holds no such sources"
  realpath "$2"
}
if [ -n "$nccl_tests" ]; then
  nccl_tests=$(sources --nccl-tests "$nccl_tests" src/all_reduce.cu)
fi
if [ -n "$osu" ]; then
  osu=$(sources --osu "$osu" c/mpi/pt2pt/standard/osu_bw.c)
fi
if [ -n "$openmpi" ]; then
  openmpi=$(sources --openmpi "$openmpi" ompi/include/mpi.h.in)
  [ -x "$openmpi/configure" ] || refuse "the folder '$openmpi', which --openmpi names, has no configure: a release is needed"
  [ ! -e "$openmpi/config.status" ] \
    || refuse "the folder '$openmpi', which --openmpi names, was configured before: unpack the release again"
fi
if [ -e "$out" ] && [ ! -f "$out/SHA256SUMS" ] && [ -n "$(ls -A "$out" 2>&1)" ]; then
  refuse "'$out' exists and is no bundle: name a new folder"
fi
mkdir -p "$(dirname "$out")" || refuse "the folder '$out' cannot be made"
out=$(realpath "$out")

cd "$(dirname "$0")/.."
root=$PWD
work=$root/build/bundle
bundle=$work/$(basename "$out")
for tool in cmake ninja make g++ pkg-config strip xz git; do
  command -v "$tool" > /dev/null || fail "$tool is missing here (ci/debian-build.txt)"
done
[ "$(uname -m)" = x86_64 ] || fail "this machine is $(uname -m); the wheels and programs are x86_64"
rm -rf "$bundle"
mkdir -p "$bundle" "$work/logs"
source ci/bundle/steps.sh

prepare_tools
python_packages
driver_stub
mpi_and_ucx
own_programs
if [ -n "$nccl_tests" ]; then
  nccl_tests_programs
fi
if [ -n "$osu" ]; then
  osu_programs
fi
libraries
cp ci/bundle/enter.sh ci/bundle/prepare.sh "$bundle"
check
about > "$bundle/about.txt"
(cd "$bundle" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum) \
  > "$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$bundle/SHA256SUMS"

tar -C "$work" --owner=0 --group=0 --sort=name -cf - "$(basename "$out")" \
  | xz --threads=0 > "$work/bundle.tar.xz"
rm -rf "$out"
mv "$bundle" "$out"
mv "$work/bundle.tar.xz" "$out.tar.xz"
cat "$out/about.txt"
say "$out: $(du -sm "$out" | cut -f1) MiB; $out.tar.xz: $(du -m "$out.tar.xz" | cut -f1) MiB"
