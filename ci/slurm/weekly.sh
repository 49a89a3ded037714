#!/bin/bash
# Measures, at the lowest priority, nodes whose last session is older than DAYS. For scrontab:
#   0 1 * * * /opt/fabricheck/ci/slurm/weekly.sh
# One job a node: each starts when its node is idle, and is requeued when a job needs the node, where
# the partition or the QOS PREEMPT is preemptible (PreemptMode=REQUEUE).
set -euo pipefail
root=${FABRICHECK_ROOT:-/opt/fabricheck}
days=${DAYS:-7} partition=${PARTITION:-gpu} set=${SET:-node}
# shellcheck source=/dev/null
source "$root/env.sh"
nodes=$(sinfo --noheader --partition "$partition" --states idle,mixed,allocated --format %N)
[ -n "$nodes" ] || exit 0
# Exit status 14: some are stale, a line each.
status=0
stale=$(fabricheck fleet --stale "$days" --nodes "$nodes") || status=$?
[ "$status" = 14 ] || exit "$status"
for node in $(cut -d : -f 1 <<< "$stale"); do
  # Not a second one for a node that still waits for the first.
  [ -z "$(squeue --noheader --name "fabricheck-$node" --format %i)" ] || continue
  sbatch --job-name "fabricheck-$node" --partition "$partition" --nodelist "$node" --nodes 1 \
    --exclusive --requeue --no-kill --nice=2147483645 --time "${MINUTES:-15}" \
    ${OPTIONS:-} --output /dev/null \
    --wrap "exec bash -c 'source $root/env.sh && fabricheck every-node -- --mode=$set'"
done
