#!/usr/bin/env bash
# Builds the programs of FABRICHECK_SITE: build.sh
# local: by CMake, for this CPU and for simulated nodes; elsewhere by Spack, from the committed lock.
source "$(dirname "$0")/environment.sh"
if [ "${site%%:*}" = local ]; then
  if [ -n "${FABRICHECK_HOST_PROGRAMS:-}" ] && [ -n "${FABRICHECK_SIM_PROGRAMS:-}" ]; then
    echo "build.sh: nothing to build: $FABRICHECK_HOST_PROGRAMS and $FABRICHECK_SIM_PROGRAMS" \
      "are named by variables"
    exit
  fi
  exec make programs
fi
for name in "${site/:/-}" "${site%%:*}"; do
  if [ -f "spack-env/$name/spack.lock" ]; then
    exec spack-env/install "$name"
  fi
done
fail 3 "spack-env has no environment of $site: build its programs on the runner's machine \
(docs/reference/sites.md), or name one of its partitions"
