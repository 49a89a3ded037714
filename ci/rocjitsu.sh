#!/usr/bin/env bash
# Runs programs of a ROCm build on rocjitsu, AMD's emulator of GPUs and their driver:
# rocjitsu.sh BUILD CONFIG
#   BUILD   a build of FABRICHECK_RUNTIME=rocm for the target that CONFIG emulates, for example build
#   CONFIG  a configuration of rocjitsu, for example gfx942_cdna3_kmd.json of its folder configs
# stream, memcpy and, where CONFIG has several GPUs (num_gpus), p2p measure small sizes, which
# compares all data; then each finds an injected fault. Times and bandwidths are the emulator's and
# mean nothing. Exit codes: 1 a program ended differently, 2 bad usage, 3 rocjitsu, a program or
# CONFIG is missing.
set -euo pipefail

fail() {
  echo "rocjitsu.sh: $2" >&2
  exit "$1"
}

[ $# -eq 2 ] || fail 2 "usage: rocjitsu.sh BUILD CONFIG"
build=$1
config=$2
command -v rocjitsu > /dev/null \
  || fail 3 "rocjitsu is not installed: it is in emulation/rocjitsu of https://github.com/ROCm/rocm-systems"
[ -r "$config" ] || fail 3 "no configuration $config"
programs=(stream memcpy)
if grep -Eq '"num_gpus": *([2-9]|[1-9][0-9])' "$config"; then
  programs+=(p2p)
else
  echo "rocjitsu.sh: $config has one GPU: p2p is not run"
fi
for program in "${programs[@]}"; do
  [ -x "$build/bin/$program" ] || fail 3 "no program $build/bin/$program"
done

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
# As short as the programs allow: an emulated launch takes long.
options=(--sizes 64KiB --samples 6 --max-samples 6 --batch-time 0.000001 --warm-up 0 --series-time 0
  --precision 1 --noise-limit 10)

# Runs a program with options, which has to end with one of some statuses.
expect() {
  local wanted=$1 program=$2 status=0
  shift 2
  [ "$program" != p2p ] || set -- --pairs 0-1 --chase-size 1MiB "$@"
  rocjitsu --config "$config" -- "$build/bin/$program" "${options[@]}" \
    --output "$output/$program.json" "$@" > "$output/said.txt" 2>&1 || status=$?
  if ! [[ $status =~ ^($wanted)$ ]]; then
    cat "$output/said.txt" >&2
    fail 1 "$program${*:+ $*} ended with $status, not with ${wanted/|/ or }"
  fi
  echo "rocjitsu.sh: $program${*:+ $*} ended with $status, as it must"
}

for program in "${programs[@]}"; do
  expect '0|7' "$program" # 7: too noisy to judge, which in an emulator says nothing
  expect 5 "$program" --inject-fault flip-bit:0:3
done
