#!/usr/bin/env bash
# What a container starts with: start.sh COMMAND...
# Says what is missing around it in one sentence, then sources env.sh and runs the command.
set -euo pipefail
cd "$(dirname "$0")/../.."

results=${FABRICHECK_RESULTS:-$PWD/results}
if ! mkdir -p "$results" 2> /dev/null || [ ! -w "$results" ]; then
  echo "start: user $(id -u) cannot write the results to $results: mount a folder of this user there" \
    "(podman run --userns keep-id --volume \"\$PWD/results:/results\")" >&2
  exit 4
fi
# A name of its own, which the machine's namespace is not (PROC_UTS_INIT_INO of Linux).
if [ "$(readlink /proc/self/ns/uts)" != "uts:[4026531838]" ]; then
  advice=
  if [ -n "${KUBERNETES_SERVICE_HOST:-}" ]; then
    advice="give the pod hostNetwork: true"
  elif [[ $(uname -n) =~ ^[0-9a-f]{12}$ ]]; then
    advice="add --hostname \"\$(uname -n)\""
  fi
  if [ -n "$advice" ]; then
    echo "start: $(uname -n) is the name of this container, not of its machine, and results will have it:" \
      "$advice" >&2
  fi
fi
source ./env.sh
exec "$@"
