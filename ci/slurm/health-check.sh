#!/bin/sh
# HealthCheckProgram of Slurm, every five minutes and beside jobs. In slurm.conf:
#   HealthCheckProgram=/etc/slurm/health-check.sh
#   HealthCheckInterval=300
# It runs the command that drains the node where the evidence is of hardware, and keeps the reason of
# a node that is drained already. Jobs that run go on.
FABRICHECK=${FABRICHECK:-/opt/fabricheck/.venv/bin/fabricheck}
LOOK=${LOOK:-mi250x --fabric slingshot-11}
: "${SLURMD_NODENAME:=$(/usr/bin/hostname -s)}"
export SLURMD_NODENAME
# shellcheck disable=SC2086  # several words
line=$(/usr/bin/timeout 15 "$FABRICHECK" node health $LOOK --drain-lines 2> /dev/null)
[ "$?" -eq 12 ] && [ -n "$line" ] || exit 0
scontrol show node "$SLURMD_NODENAME" | grep -q 'State=[^ ]*DRAIN' && exit 0
eval "$line"
