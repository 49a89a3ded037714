#!/bin/sh
# Prolog and Epilog of Slurm: no job on a node whose hardware has a fault. In slurm.conf:
#   Prolog=/etc/slurm/prolog.sh
#   Epilog=/etc/slurm/prolog.sh
# Slurm drains the node where it fails. MODEL, and what else `fabricheck node health` takes, is the
# site's: name both below. It opens no device and ends within some seconds.
FABRICHECK=${FABRICHECK:-/opt/fabricheck/.venv/bin/fabricheck}
LOOK=${LOOK:-mi250x --fabric slingshot-11}
# shellcheck disable=SC2086  # several words
line=$(/usr/bin/timeout 15 "$FABRICHECK" node health $LOOK 2>&1)
code=$?
[ "$code" -eq 0 ] && exit 0
/usr/bin/logger -t fabricheck "node health ended with $code: $line"
# Only 12 is a fault of the node. Any other code says nothing about it, and it keeps its jobs.
[ "$code" -ne 12 ]
